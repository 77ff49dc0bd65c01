"""Rand estimates what Ref computes, and comes as near to it as Theorem 5.6 says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from math import ceil, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.replay.engine.limits import MOST_ORDERINGS
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay import literal
from tests.replay.certificate import certify, processors_started
from tests.replay.strategies import Job, workload_of_jobs, workloads

SMALL = workloads(organizations=st.integers(2, 3), owned=st.integers(0, 2), jobs=12)
WIDE = workloads(
    organizations=st.just(3),
    owned=st.integers(0, 4),
    lengths=st.integers(10, 30),
    widths=st.integers(1, 9),
    jobs=12,
)
RIGID = workloads(
    organizations=st.just(3),
    owned=st.integers(0, 3),
    lengths=st.integers(10, 30),
    widths=st.integers(1, 6),
    jobs=25,
    wide="rigid",
    backfills=st.sampled_from(["none", "easy"]),
)


def first_come_values(workload: Workload) -> literal.Values:
    """What each coalition is worth at the window's end if it serves whoever comes first."""
    everybody = frozenset(range(len(workload.organizations)))
    schedules = {c: literal.CoalitionSchedule(workload, c) for c in literal.subsets(everybody)}
    for schedule in schedules.values():
        for t in literal.moments(workload, [schedule]):
            schedule.decide(t, literal.first_come(schedule))
    return literal.Values(schedules, workload.window.length)


def possible_draws(
    workload: Workload, count: int, contribution: Sequence[object]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All orderings, so many, that would give this contribution."""
    v = first_come_values(workload)
    everybody = frozenset(range(len(workload.organizations)))
    for orderings in combinations_with_replacement(literal.all_orderings(everybody), count):
        if all(literal.eq_2(u, orderings, v) == contribution[u] for u in everybody):
            yield orderings


def assert_is_rand_for_some_orderings(workload: Workload, count: int, seed: int) -> None:
    schedule = run_policy(workload, "rand", seed=seed, orderings=count)
    assert schedule.contribution is not None
    started = processors_started(schedule)
    assert any(
        literal.processors_started(literal.rand(workload, orderings).starts) == started
        for orderings in possible_draws(workload, count, schedule.contribution)
    )


@settings(max_examples=examples(100))
@given(workload=SMALL, count=st.integers(1, 4), seed=st.integers(0, 2**40))
def test_rand_is_what_the_papers_define_for_some_orderings(
    workload: Workload, count: int, seed: int
) -> None:
    assert_is_rand_for_some_orderings(workload, count, seed)


@settings(max_examples=examples(100))
@given(workload=WIDE, count=st.integers(1, 2), seed=st.integers(0, 2**40))
def test_sampled_coalitions_start_copies_of_wide_jobs_whenever_processors_are_free(
    workload: Workload, count: int, seed: int
) -> None:
    assert_is_rand_for_some_orderings(workload, count, seed)


@settings(max_examples=examples(150))
@given(workload=RIGID, count=st.integers(1, 2), seed=st.integers(0, 2**40))
def test_sampled_coalitions_run_the_same_rule_for_rigid_jobs(
    workload: Workload, count: int, seed: int
) -> None:
    assert_is_rand_for_some_orderings(workload, count, seed)


@pytest.mark.parametrize("seed", range(10))
def test_a_job_too_wide_for_a_coalition_gives_its_organization_no_turn_there(seed: int) -> None:
    """The first and the last organization alone never run the job that came first of all."""
    jobs = [Job(0, 1, 1, 2), Job(2, 0, 1, 3), Job(2, 1, 1, 1)]
    workload = workload_of_jobs([0, 1, 2], jobs, 10, wide="rigid")
    assert_is_rand_for_some_orderings(workload, 1, seed)


@settings(max_examples=examples(40))
@given(workload=workloads(), seed=st.integers(0, 2**40))
def test_estimated_contributions_sum_to_what_all_are_worth_together(
    workload: Workload, seed: int
) -> None:
    schedule = run_policy(workload, "rand", seed=seed, orderings=3)
    everybody = frozenset(range(len(workload.organizations)))
    assert schedule.contribution is not None
    assert sum(schedule.contribution) == first_come_values(workload)[everybody]
    certify(workload, schedule)


def test_every_ordering_is_drawn_as_often_as_any_other() -> None:
    """Orderings of three organizations show in what the first contributes to the coalitions."""
    jobs = [Job(0, 0, 1, 8), Job(1, 0, 1, 4), Job(2, 0, 1, 2)]
    workload = workload_of_jobs([1, 2, 5], jobs, 4)
    v = first_come_values(workload)
    contributions = [
        tuple(literal.eq_2(u, [ordering], v) for u in range(3))
        for ordering in literal.all_orderings(frozenset(range(3)))
    ]
    assert len(set(contributions)) == 6
    drawn = [run_policy(workload, "rand", seed=s, orderings=1).contribution for s in range(600)]
    for contribution in contributions:
        assert 60 <= drawn.count(contribution) <= 140  # 100 expected, ± more than 4 deviations


# Theorem 5.6


def unit_size_jobs(seed: int, organizations: int = 3) -> Workload:
    """Unit-size jobs in bursts, so that many wait."""
    random = np.random.default_rng(seed)
    jobs = [
        Job(int(random.integers(organizations)), int(release), 1, int(random.integers(1, 9)))
        for release in random.integers(0, 12, 14)
    ]
    owned = random.permutation([0, 1, 3, 1][:organizations]).tolist()
    return workload_of_jobs(owned, jobs, 40)


def distance_from_ref(workload: Workload, orderings: int, seed: int) -> float:
    """‖ψ − ψ*‖ / |ψ*|."""
    ref = measure(workload, run_policy(workload, "ref")).utilities
    rand = measure(workload, run_policy(workload, "rand", orderings=orderings, seed=seed)).utilities
    return sum(abs(a - b) for a, b in zip(rand, ref, strict=True)) / sum(ref)


@pytest.mark.parametrize(("epsilon", "confidence"), [(0.5, 0.9), (0.1, 0.9), (0.02, 0.5)])
def test_unit_size_jobs_are_as_near_to_ref_as_theorem_5_6_says(
    epsilon: float, confidence: float
) -> None:
    k = 3
    count = ceil(k**2 / epsilon**2 * log(k / (1 - confidence)))
    distances = [distance_from_ref(unit_size_jobs(seed), count, seed) for seed in range(30)]
    assert sum(distance <= epsilon for distance in distances) >= confidence * len(distances)


def test_more_orderings_come_nearer_to_ref() -> None:
    few, many, most = (
        sum(distance_from_ref(unit_size_jobs(seed, 4), count, seed) for seed in range(30))
        for count in (1, 15, 5000)
    )
    assert few > 2 * many > 4 * most


@pytest.mark.parametrize("orderings", [0, MOST_ORDERINGS + 1])
def test_rand_without_orderings_and_of_too_many_is_refused(orderings: int) -> None:
    with pytest.raises(PolicyError, match="ordering"):
        run_policy(unit_size_jobs(0), "rand", orderings=orderings)
