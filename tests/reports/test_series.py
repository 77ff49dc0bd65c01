"""Curves and matrices, held against the papers' definitions and against the replay's own sums."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shapleyprio.fairness.worth import worth
from shapleyprio.replay import Window, Workload, measure, run_policy
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.measures import contributed
from shapleyprio.replay.measures.series import (
    drift_of,
    even_moments,
    executed_where,
    series_of,
    utilization_of,
    waits_of,
)
from tests.reports.workloads import LENGTH, NAMES, log_in, workload_in

POLICIES = ["ref", "directcontr", "fcfs", "recorded"]


@pytest.fixture(params=[None, 9], ids=["no horizon", "a horizon"])
def workload(tmp_path: Path, request: pytest.FixtureRequest) -> Workload:
    return replace(workload_in(log_in(tmp_path)), horizon=request.param)


def cut(workload: Workload, length: int) -> Workload:
    return replace(workload, window=Window(start=0, length=length))


def literal_utilities(workload: Workload, schedule: Schedule, t: int) -> list[int]:
    """Eq. 3, copy by copy, second by second."""
    found = [0] * len(NAMES)
    for job, start, copies in zip(schedule.job, schedule.start, schedule.copies, strict=True):
        if start < t:
            end = int(start + workload.processing_time[job])
            ages = (
                min(t - second, workload.horizon or t) for second in range(int(start), min(end, t))
            )
            found[workload.organization[job]] += int(copies) * sum(ages)
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_utilities_over_time_are_the_papers_definition(workload: Workload, policy: str) -> None:
    schedule = run_policy(workload, policy)
    series = series_of(workload, schedule, range(LENGTH + 1))
    for t in range(LENGTH + 1):
        shown = [row[t] for row in series.utilities]
        assert shown == literal_utilities(workload, schedule, t)


@pytest.mark.parametrize("policy", POLICIES)
def test_curves_end_where_the_replay_measures(workload: Workload, policy: str) -> None:
    schedule = run_policy(workload, policy)
    series = series_of(workload, schedule, even_moments(LENGTH, 7))
    measures = measure(workload, schedule)
    assert tuple(row[-1] for row in series.utilities) == measures.utilities
    assert tuple(row[-1] for row in series.parts) == measures.parts
    if policy == "recorded":
        assert series.contributions is None
    else:
        assert series.contributions is not None
        ends = tuple(row[-1] for row in series.contributions)
        assert ends == contributed(workload, schedule)


def test_worths_beyond_64_bits_stay_exact(workload: Workload) -> None:
    length = 2**31 - 1
    long = replace(
        workload,
        horizon=None if workload.horizon is None else 2**30,
        window=Window(start=0, length=length),
        processing_time=workload.processing_time * 0 + 2**40,
    )
    schedule = run_policy(workload, "fcfs")
    schedule = replace(schedule, copies=schedule.copies * 2**20)
    series = series_of(long, schedule, [length // 2, length])
    expected = sum(
        int(copies) * worth(int(start), None, length, horizon=long.horizon)
        for start, copies in zip(schedule.start, schedule.copies, strict=True)
    )
    assert expected > 2**64
    assert sum(row[-1] for row in series.utilities) == expected


def test_drift_over_time_is_that_of_shorter_windows(workload: Workload) -> None:
    fair, other = run_policy(workload, "ref"), run_policy(workload, "fcfs")
    moments = [0, 20, 40, LENGTH]
    rows = drift_of(series_of(workload, other, moments), series_of(workload, fair, moments))
    assert [row[0] for row in rows] == [None] * len(NAMES)
    for place, t in enumerate(moments[1:], start=1):
        ours, due = measure(cut(workload, t), other), measure(cut(workload, t), fair)
        for u, row in enumerate(rows):
            expected = (ours.utilities[u] - due.utilities[u]) / due.p_tot
            assert row[place] == pytest.approx(expected)


def test_the_matrix_has_all_work_once(workload: Workload) -> None:
    schedule = run_policy(workload, "directcontr")
    matrix = executed_where(workload, schedule)
    assert tuple(map(sum, matrix)) == measure(workload, schedule).parts
    assert all(row[-1] == 0 for row in matrix)
    literal = 0
    for job, start, owner, copies in zip(
        schedule.job, schedule.start, schedule.owner, schedule.copies, strict=True
    ):
        if start < LENGTH and workload.organization[job] == 0 and owner == 2:
            end = int(start + workload.processing_time[job])
            literal += int(copies) * (min(end, LENGTH) - int(start))
    assert matrix[0][2] == literal > 0


def test_work_on_processors_of_nobody_known_has_its_own_column(workload: Workload) -> None:
    schedule = run_policy(workload, "recorded")
    matrix = executed_where(workload, schedule)
    assert tuple(row[-1] for row in matrix) == measure(workload, schedule).parts


def test_utilization_over_time_adds_up_to_the_whole(workload: Workload) -> None:
    schedule = run_policy(workload, "fcfs")
    moments = [0, 7, 31, LENGTH]
    rows = utilization_of(series_of(workload, schedule, moments), workload.system_processors)
    whole = sum(
        value * (end - begin) / LENGTH
        for row in rows
        for value, begin, end in zip(row, moments, moments[1:], strict=False)
    )
    assert whole == pytest.approx(float(measure(workload, schedule).utilization))


def test_percentiles_of_waits_are_those_of_sorted_copies(tmp_path: Path) -> None:
    workload = replace(workload_in(log_in(tmp_path), length=400), wide="expand")
    schedule = run_policy(workload, "fcfs")
    assert int(schedule.copies.sum()) == int(workload.processors.sum())
    for u, (median, longest) in enumerate(
        found for found in waits_of(workload, schedule, [50, 100]) if found is not None
    ):
        waits = sorted(
            int(start) - int(workload.release[job])
            for job, start, copies in zip(
                schedule.job, schedule.start, schedule.copies, strict=True
            )
            if workload.organization[job] == u
            for _ in range(copies)
        )
        assert (median, longest) == (waits[-(-len(waits) // 2) - 1], waits[-1])


def test_an_organization_without_jobs_has_no_waits(workload: Workload) -> None:
    without = replace(workload, organization=workload.organization.clip(0, 1))
    assert waits_of(without, run_policy(without, "fcfs"), [50])[2] is None


def test_moments_are_whole_seconds_from_begin_to_end() -> None:
    assert even_moments(10, 4) == (0, 2, 5, 7, 10)
    assert even_moments(2, 240) == (0, 1, 2)
