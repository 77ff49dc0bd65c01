"""Who worked for whom, and use and contribution over time, against a count second by second."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.common.errors import Remedy, ReplayError
from shapleyprio.replay.audit.auditing import MOST_PERIODS, periods
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.measures.series import executed_where
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.workload import Workload
from tests.replay.audit.recorded import recorded, recorded_workloads
from tests.replay.strategies import Job, workload_of_jobs

LENT = recorded(
    [1, 1],
    [(Job(0, 0, 6), 0, 0), (Job(0, 0, 4), 0, 1), (Job(1, 1, 8), 4, 1), (Job(1, 2, 2), 6, 0)],
    length=10,
)
"""Organization 0 borrows 1's processor for 4 s; then each has its own until 1 borrows 0's for 2."""


def seconds_worked(workload: Workload) -> list[tuple[int, int, int]]:
    """(organization, owner, second) of every part, one by one."""
    assert workload.placed is not None
    columns = (
        workload.organization,
        workload.placed.owners.codes,
        workload.start,
        workload.processing_time,
    )
    return [
        (u, owner, second)
        for u, owner, start, seconds in zip(*(c.tolist() for c in columns), strict=True)
        for second in range(start, min(start + seconds, workload.window.length))
    ]


def test_the_matrix_shows_whose_nodes_worked_for_whom() -> None:
    assert executed_where(LENT, run_policy(LENT, "recorded")) == ((6, 4, 0), (2, 6, 0))


@given(recorded_workloads())
def test_the_matrix_counts_every_second_of_work(workload: Workload) -> None:
    k = len(workload.organizations)
    counted = [[0] * (k + 1) for _ in range(k)]
    for u, owner, _ in seconds_worked(workload):
        counted[u][k if owner < 0 else owner] += 1
    matrix = executed_where(workload, run_policy(workload, "recorded"))
    assert [list(row) for row in matrix] == counted


@given(recorded_workloads(), st.integers(1, 12))
def test_periods_count_every_second_of_work(workload: Workload, seconds: int) -> None:
    parts, k = seconds_worked(workload), len(workload.organizations)
    answer = periods(workload, run_policy(workload, "recorded"), seconds)
    assert [one.start for one in answer] == list(range(0, workload.window.length, seconds))
    assert [one.end for one in answer[:-1]] == [one.start for one in answer[1:]]
    assert answer[-1].end == workload.window.length
    for one in answer:
        now = [part for part in parts if one.start <= part[2] < one.end]
        assert one.used == tuple(sum(u == x for u, _, _ in now) for x in range(k))
        assert one.contributed == tuple(sum(o == x for _, o, _ in now) for x in range(k))


@given(recorded_workloads(), st.integers(1, 12))
def test_utility_and_contribution_are_the_worth_of_all_parts_so_far(
    workload: Workload, seconds: int
) -> None:
    parts, k = seconds_worked(workload), len(workload.organizations)
    for one in periods(workload, run_policy(workload, "recorded"), seconds):
        worth = [(u, o, one.end - second) for u, o, second in parts if second < one.end]
        assert one.utilities == tuple(sum(w for u, _, w in worth if u == x) for x in range(k))
        assert one.contributions == tuple(sum(w for _, o, w in worth if o == x) for x in range(k))


@given(recorded_workloads(), st.integers(1, 12))
def test_the_last_period_ends_with_what_the_schedule_is_worth(
    workload: Workload, seconds: int
) -> None:
    schedule = run_policy(workload, "recorded")
    last = periods(workload, schedule, seconds)[-1]
    assert last.utilities == measure(workload, schedule).utilities
    assert last.contributions == schedule.contribution


def test_a_period_longer_than_the_window_is_the_window() -> None:
    (only,) = periods(LENT, run_policy(LENT, "recorded"), 1000)
    assert (only.start, only.end) == (0, 10)
    assert only.used == (10, 8)
    assert only.contributed == (8, 10)


def test_without_owners_only_use_is_reported() -> None:
    workload = workload_of_jobs([1], [Job(0, 0, 5)], 10)
    workload.start[:] = 2
    (only,) = periods(workload, run_policy(workload, "recorded"), 10)
    assert only.used == (5,)
    assert only.contributed is None
    assert only.contributions is None


def test_too_many_periods_are_refused_with_the_shortest_that_is_possible() -> None:
    workload = workload_of_jobs([1], [Job(0, 0, 5)], 2 * MOST_PERIODS + 1)
    workload.start[:] = 2
    schedule = run_policy(workload, "recorded")
    with pytest.raises(ReplayError, match="an audit takes 10000 at most") as caught:
        periods(workload, schedule, 1)
    assert caught.value.remedy is Remedy.PERIOD_AT_LEAST
    assert len(periods(workload, schedule, 3)) <= MOST_PERIODS
