"""With a horizon every part is worth min(age, H), in all policies by ψ or φ̃ as in the daemon."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.tenure import Allocation
from shapleyprio.replay.engine import limits
from shapleyprio.replay.measures.measures import contributed, measure
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay import literal, test_policies
from tests.replay.certificate import KEYS, certify, processors_started
from tests.replay.strategies import HORIZONS, Job, workload_of_jobs, workloads
from tests.replay.test_rand import assert_is_rand_for_some_orderings
from tests.replay.test_ref import QUEUES, assert_is_ref, blocks_of


def with_horizon(
    drawn: st.SearchStrategy[Workload], longest: int = 25
) -> st.SearchStrategy[Workload]:
    """The same workloads, with horizons."""
    return st.builds(replace, drawn, horizon=st.integers(1, longest))


BUSY, RIGID = with_horizon(test_policies.BUSY), with_horizon(test_policies.RIGID)
INDIFFERENT = ["simpl-direct", "fairshare", "currfairshare", "karma", "kai", "roundrobin", "fcfs"]
"""Policies that do not ask what parts are worth."""


# the oracle itself


@settings(max_examples=examples(40))
@given(workload=BUSY)
def test_the_oracles_worth_is_the_daemons(workload: Workload) -> None:
    schedule, t = literal.simulated(workload, "fcfs", seed=0), workload.window.length
    names = workload.organizations
    ledger = Ledger(workload.horizon)
    allocations = [
        Allocation(names[start.task.organization], names[owner], 1, start.start, min(start.end, t))
        for start in schedule.starts
        for owner in start.owners
    ]
    assert workload.horizon is not None
    ledger.add(allocations)
    ledger.fold(t - workload.horizon, allocations)
    parts = literal.executed(schedule, t)
    for u, standing in enumerate(ledger.standings(t, names).values()):
        mine = sum(literal.psi(part, t) for part in parts if part.organization == u)
        assert schedule.utility(u, t) == mine == standing.utility
        lent = sum(literal.psi(part, t) for part in parts if part.owner == u)
        assert lent == standing.contribution


# the kernel against the oracle


@settings(max_examples=examples(150))
@given(workload=workloads(horizons=HORIZONS))
def test_ref_is_the_literal_one(workload: Workload) -> None:
    assert_is_ref(workload)


@settings(max_examples=examples(60))
@given(workload=with_horizon(QUEUES, longest=1_500))
def test_ref_of_queues_that_last(workload: Workload) -> None:
    assert_is_ref(workload)


@settings(max_examples=examples(60))
@given(workload=BUSY, seconds=st.integers(1, 12))
def test_ref_does_not_depend_on_where_its_blocks_end(workload: Workload, seconds: int) -> None:
    with blocks_of(seconds):
        assert_is_ref(workload)


@settings(max_examples=examples(60))
@given(workload=RIGID)
def test_coalitions_run_the_same_rule_for_rigid_jobs(workload: Workload) -> None:
    assert_is_ref(workload)


@settings(max_examples=examples(60))
@given(
    workload=workloads(
        lengths=st.integers(900_000, 1_000_000),
        processing_times=st.integers(1, 40),
        jobs=8,
        horizons=st.integers(1, 400_000),
    )
)
def test_ref_of_rare_jobs_that_saturate_in_blocks_in_which_nothing_else_happens(
    workload: Workload,
) -> None:
    assert_is_ref(workload)


def test_room_is_made_where_a_horizon_has_more_events_than_it_began_with() -> None:
    jobs = [Job(u, release, 1 + release % 3) for release in range(60) for u in (1, 0, 1)]
    with blocks_of(2):
        assert_is_ref(workload_of_jobs([1, 1], jobs, 90, horizon=40))
        workload = workload_of_jobs([1, 1, 0], jobs, 90, horizon=40)
        assert_is_rand_for_some_orderings(workload, 1, seed=1)


@pytest.mark.parametrize("policy", ["ref", "utfairshare", "directcontr"])
def test_a_horizon_decides_who_comes_next(policy: str) -> None:
    """The first organization's three parts are old, the second one's four are young.

    Without a horizon the old ones are worth 24 + 23 + 22, the young ones 4 + 3 + 2 + 1; with one
    of a second every part is worth 1.
    """
    jobs = [Job(0, 0, 3), Job(1, 20, 4), Job(0, 24, 2), Job(1, 24, 2)]
    first = {}
    for horizon in (None, 1):
        workload = workload_of_jobs([0, 0, 1], jobs, 40, horizon=horizon)
        schedule = run_policy(workload, policy)
        first[horizon] = int(workload.organization[schedule.job[2]])
    assert first == {None: 1, 1: 0}


@settings(max_examples=examples(60))
@given(
    workload=workloads(organizations=st.integers(2, 3), jobs=12, horizons=HORIZONS),
    count=st.integers(1, 3),
    seed=st.integers(0, 2**40),
)
def test_rand_is_the_literal_one(workload: Workload, count: int, seed: int) -> None:
    assert_is_rand_for_some_orderings(workload, count, seed)


@pytest.mark.parametrize("policy", sorted(KEYS))
@settings(max_examples=examples(40))
@given(workload=BUSY | RIGID, seed=st.integers(0, 2**40))
def test_every_decision_is_the_policys(policy: str, workload: Workload, seed: int) -> None:
    schedule = run_policy(workload, policy, seed=seed)
    certified = certify(workload, schedule)
    assert list(measure(workload, schedule).utilities) == certified.utility
    assert list(contributed(workload, schedule)) == certified.lent


@pytest.mark.parametrize("policy", INDIFFERENT)
@settings(max_examples=examples(10))
@given(workload=BUSY | RIGID)
def test_other_policies_decide_as_without(policy: str, workload: Workload) -> None:
    within, without = (
        processors_started(run_policy(each, policy))
        for each in (workload, replace(workload, horizon=None))
    )
    assert within == without


@settings(max_examples=examples(40))
@given(workload=BUSY, policy=st.sampled_from(["ref", "rand", *sorted(KEYS)]))
def test_a_horizon_as_long_as_the_window_changes_nothing(workload: Workload, policy: str) -> None:
    length = workload.window.length
    one, two = (
        run_policy(replace(workload, horizon=horizon), policy) for horizon in (length, None)
    )
    assert processors_started(one) == processors_started(two)
    assert one.contribution == two.contribution


def test_several_cores_decide_as_one_does() -> None:
    random = np.random.default_rng(11)
    columns = (
        random.integers(0, 11, 60),
        random.integers(0, 3_000, 60),
        random.integers(1, 900, 60),
        random.integers(1, 4, 60),
    )
    jobs = [Job(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    owned = random.integers(0, 3, 11).tolist()
    workload = workload_of_jobs(owned, jobs, 4_000, horizon=700)
    one, two = (run_policy(workload, "ref", cores=cores) for cores in (1, 2))
    assert processors_started(one) == processors_started(two)
    assert one.contribution == two.contribution
    assert one.contribution is not None
    assert sum(one.contribution) == sum(measure(workload, one).utilities)


# the range


@pytest.mark.parametrize("policy", ["ref", *sorted(KEYS)])
def test_a_horizon_needs_no_second_limb_and_a_long_one_with_it_is_exact(policy: str) -> None:
    """What parts have been worth before wraps, and is subtracted again."""
    scale = 2**30
    jobs = [
        Job(0, 0, 2 * scale // 3, 9),
        Job(1, 5, scale, 700),
        Job(2, scale // 2, scale // 3, 600),
        Job(0, scale - 9, 40, 900),
        Job(1, scale - 8, 40, 800),
        Job(2, scale - 7, 40, 700),
    ]
    for horizon in (9, 3_000, scale // 2):
        workload = workload_of_jobs([700, 300, 0], jobs, scale + 100, horizon=horizon, wide="rigid")
        assert limits.check_range(workload) == (horizon > 2**20)
        if policy == "ref":
            assert_is_ref(workload)
        else:
            certify(workload, run_policy(workload, policy))


def test_decades_with_a_horizon_of_a_month_fit_into_64_bits() -> None:
    workload = workload_of_jobs([1_000], [Job(0, 0, 1)], 20 * 365 * 86_400, horizon=30 * 86_400)
    assert not limits.check_range(workload)
    assert limits.check_range(replace(workload, horizon=None))
