"""What an organization can gain by presenting its work otherwise: nothing, or nothing in the mean.

That the utility itself is strategy-proof, for a given schedule, is tested in
`tests/fairness/test_utility.py`. Here policies decide anew about what is presented.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.lab.bench.fairness.manipulations import (
    Presentation,
    as_copies,
    delayed,
    honestly,
    in_halves,
    merged,
    padded,
    utility_of,
    with_limits,
)
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import POLICIES, Estimation, run_policy
from shapleyprio.replay.workloads.workload import UserHistory, Workload
from tests.examples import examples
from tests.replay.strategies import Job, jobs_of, workload_of_jobs, workloads

GREEDY = sorted(set(POLICIES) - {"recorded"})
IN_USE = ("directcontr", "fairshare", "shapley", "live")
ONE_SECOND = Estimation(recompute=1, predictor="limit")
SELDOM = replace(ONE_SECOND, recompute=5)


def utilities(workload: Workload, policy: str) -> tuple[int, ...]:
    schedule = run_policy(workload, policy, estimation=ONE_SECOND)
    return measure(workload, schedule).utilities


# splitting


@pytest.mark.parametrize("policy", GREEDY)
@settings(max_examples=examples(30))
@given(workload=workloads(organizations=st.integers(1, 3)), data=st.data())
def test_cutting_wide_jobs_into_sequential_copies_changes_nothing(
    policy: str, workload: Workload, data: st.DataObject
) -> None:
    placed = replace(workload, placement="least-loaded")  # random draws would differ
    u = data.draw(st.integers(0, len(workload.organizations) - 1))
    copies = as_copies(placed, u).workload
    assert utilities(copies, policy) == utilities(placed, policy)


# delaying and padding, where the order of jobs cannot change how busy the system is


ON_ONE_PROCESSOR = workloads(
    organizations=st.integers(1, 3),
    owned=st.just(0),  # the first organization gets the only one
    widths=st.just(1),
)
OF_UNIT_SIZE = workloads(organizations=st.integers(1, 3), processing_times=st.just(1))


@pytest.mark.parametrize("policy", GREEDY)
@settings(max_examples=examples(30))
@given(workload=ON_ONE_PROCESSOR | OF_UNIT_SIZE, later=st.integers(1, 6), data=st.data())
def test_delaying_never_helps_the_consortium_if_the_order_of_jobs_does_not_matter(
    policy: str, workload: Workload, later: int, data: st.DataObject
) -> None:
    u = data.draw(st.integers(0, len(workload.organizations) - 1))
    late = delayed(later)(workload, u).workload
    before = sum(utilities(workload, policy))
    assert before >= (sum(utilities(late, policy)) if len(late.job) else 0)


@pytest.mark.parametrize("policy", GREEDY)
@settings(max_examples=examples(30))
@given(
    workload=workloads(organizations=st.just(1), owned=st.just(0), widths=st.just(1)),
    percent=st.integers(1, 200),
)
def test_alone_on_a_processor_nobody_gains_by_padding(
    policy: str, workload: Workload, percent: int
) -> None:
    before = utility_of(honestly(workload, 0), 0, policy, estimation=ONE_SECOND)
    padding = padded(percent)(workload, 0)
    assert utility_of(padding, 0, policy, estimation=ONE_SECOND) <= before


@pytest.mark.parametrize("policy", GREEDY)
def test_a_delay_may_pay_by_chance_whoever_decides(policy: str) -> None:
    """Fig. 7: long jobs had better go first, and they do if the short ones come a second later."""
    short, long = Job(0, 0, 3, 4), Job(0, 0, 6, 2)
    assert utilities(workload_of_jobs([4], [short, long], 7), policy) == (92,)
    later = replace(short, release=1)
    assert utilities(workload_of_jobs([4], [later, long], 7), policy) == (96,)


# in the mean over workloads


@cache
def contended(seed: int) -> Workload:
    """Three organizations with one and a half times the work that they can do meanwhile."""
    random = np.random.default_rng(seed)
    length, owned = 200, random.integers(1, 4, 3).tolist()
    jobs = [
        Job(
            organization=int(random.integers(0, 3)),
            release=int(random.integers(0, length * 2 // 3)),
            processing_time=(seconds := int(random.integers(1, 24))),
            processors=int(random.integers(1, 3)),
            limit=2 * seconds,
        )
        for _ in range(length * sum(owned) // 18)
    ]
    return workload_of_jobs(owned, jobs, length)


@cache
def honest_utility(seed: int, policy: str) -> int:
    return utility_of(honestly(contended(seed), 0), 0, policy, estimation=SELDOM)


def gains(present: Presentation, policy: str, seeds: Sequence[int]) -> list[float]:
    """Seconds for each part of the first organization by which its work is worth more."""
    found = []
    for seed in seeds:
        workload = contended(seed)
        otherwise = utility_of(present(workload, 0), 0, policy, estimation=SELDOM)
        ours = workload.organization == 0
        parts = (workload.processing_time * workload.processors)[ours].sum()
        found.append((otherwise - honest_utility(seed, policy)) / int(parts))
    return found


@pytest.mark.parametrize("policy", IN_USE)
@pytest.mark.parametrize(
    "present", [delayed(10), padded(10), padded(50)], ids=["delayed", "padded", "padded more"]
)
def test_delaying_and_padding_lose_in_the_mean(present: Presentation, policy: str) -> None:
    found = gains(present, policy, range(12))
    assert fmean(found) < -2
    assert sum(gain > 0 for gain in found) < len(found) / 3


@pytest.mark.parametrize("times", [0, 2, 10])
def test_wrong_limits_are_worth_next_to_nothing_under_live(times: int) -> None:
    found = gains(with_limits(times), "live", range(20))
    assert abs(fmean(found)) < 0.1


# the presentations themselves


def test_presentations_keep_the_useful_work() -> None:
    jobs = [Job(0, 0, 5, 2, limit=9), Job(0, 4, 6, 2), Job(1, 1, 7), Job(0, 9, 1, limit=3)]
    workload = workload_of_jobs([2, 1], jobs, 20)
    history = UserHistory(
        user=np.array([1, 1, 2, 3]),
        past_user=np.array([1]),
        past_limit=np.array([9]),
        past_processors=np.array([1]),
        past_processing_time=np.array([4]),
    )
    workload = replace(workload, history=history)
    assert jobs_of(as_copies(workload, 0).workload) == [
        *[Job(0, 0, 5)] * 2, *[Job(0, 4, 6)] * 2, Job(0, 9, 1), Job(1, 1, 7)
    ]  # fmt: skip
    halves = in_halves(workload, 0).workload
    assert jobs_of(halves) == [
        Job(0, 0, 3, 2), Job(0, 3, 2, 2), Job(0, 4, 3, 2), Job(0, 7, 3, 2), Job(0, 9, 1),
        Job(1, 1, 7),
    ]  # fmt: skip
    assert halves.limit.tolist() == [5, 5, -1, -1, 3, -1]
    assert halves.history is not None
    assert halves.history.user.tolist() == [1, 1, 1, 1, 2, 3]
    assert jobs_of(merged(workload, 0).workload) == [Job(0, 4, 11, 2), Job(0, 9, 1), Job(1, 1, 7)]
    late = delayed(12)(workload, 0).workload
    assert jobs_of(late) == [Job(0, 12, 5, 2), Job(0, 16, 6, 2), Job(1, 1, 7)]
    padding = padded(50)(workload, 0)
    assert padding.workload.processing_time.tolist() == [8, 9, 2, 7]
    assert padding.workload.limit.tolist() == [14, -1, 5, -1]
    assert padding.useful.tolist() == [5, 6, 1, 7]
    assert with_limits(10)(workload, 0).workload.limit.tolist() == [90, -1, 30, -1]
    assert with_limits(0)(workload, 0).workload.limit.tolist() == [5, -1, 1, -1]
