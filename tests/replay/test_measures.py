"""Measures are exact, and what a reader who counts parts and waits one by one would find."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.common.errors import Remedy, ReplayError
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.measures import Measures, drifts, measure, unfairness
from shapleyprio.replay.workloads.choices import Wide
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload
from tests.fairness.examples import parts_of, worth_by_parts
from tests.replay.strategies import HORIZONS, Job, workload_of_jobs, workloads

Batch = tuple[int, int, int]
"""Job (index into the workload), start, copies."""


def schedule_of(batches: list[Batch]) -> Schedule:
    job, start, copies = (np.array(column, dtype=np.int64) for column in zip(*batches, strict=True))
    return Schedule(
        policy="any",
        seed=0,
        job=job,
        start=start,
        owner=np.full(len(job), UNKNOWN, dtype=np.int32),
        copies=copies,
        contribution=None,
        seconds=0.0,
    )


@st.composite
def scheduled(draw: st.DrawFn, wide: Wide = "expand") -> tuple[Workload, list[Batch]]:
    """Any starts after the release, as policies and recorded schedules have them."""
    workload = draw(workloads(wide=wide, horizons=st.none() | HORIZONS))
    batches = [(0, int(workload.release[0]) + 50, 1)]  # never starts in the window
    for job in range(1, len(workload.job)):
        left = int(workload.processors[job])
        start = int(workload.release[job]) + draw(st.integers(0, 20))
        while left and draw(st.booleans()):
            copies = left if draw(st.booleans()) else 1
            batches.append((job, start, copies))
            left -= copies
            start += 0 if wide == "rigid" else draw(st.integers(0, 3))
        if left and wide == "rigid":
            batches.append((job, start, left))  # on another owner's processors
    return workload, sorted(batches, key=lambda batch: batch[1])


@given(example=scheduled())
def test_utility_and_parts_are_sums_over_unit_size_parts(
    example: tuple[Workload, list[Batch]],
) -> None:
    workload, batches = example
    t = workload.window.length
    measures = measure(workload, schedule_of(batches))
    for u in range(len(workload.organizations)):
        runs = [
            (start, start + int(workload.processing_time[job]), copies)
            for job, start, copies in batches
            if workload.organization[job] == u
        ]
        worths = (
            copies * worth_by_parts(begin, end, t, workload.horizon) for begin, end, copies in runs
        )
        assert measures.utilities[u] == sum(worths)
        done = (copies * len(parts_of(begin, end, t)) for begin, end, copies in runs)
        assert measures.parts[u] == sum(done)
    assert measures.p_tot == sum(measures.parts)
    assert measures.utilization == Fraction(measures.p_tot, workload.system_processors * t)


@given(example=scheduled())
def test_every_copy_is_a_job_and_waits_until_it_starts_or_the_window_ends(
    example: tuple[Workload, list[Batch]],
) -> None:
    workload, batches = example
    t = workload.window.length
    waits: list[tuple[int, int, int]] = []
    for job in range(len(workload.job)):
        release, seconds = int(workload.release[job]), int(workload.processing_time[job])
        starts = [start for other, start, copies in batches if other == job for _ in range(copies)]
        starts += [t] * (int(workload.processors[job]) - len(starts))
        u = int(workload.organization[job])
        waits += [(u, min(start, t) - release, seconds) for start in starts]
    assert_waits(measure(workload, schedule_of(batches)), workload, waits)


@given(example=scheduled(wide="rigid"))
def test_a_rigid_job_waits_once_however_many_processors_it_needs(
    example: tuple[Workload, list[Batch]],
) -> None:
    workload, batches = example
    t = workload.window.length
    start_of = {job: start for job, start, _ in batches}
    waits = [
        (
            int(workload.organization[job]),
            min(start_of.get(job, t), t) - int(workload.release[job]),
            int(workload.processing_time[job]),
        )
        for job in range(len(workload.job))
    ]
    assert_waits(measure(workload, schedule_of(batches)), workload, waits)


def assert_waits(measures: Measures, workload: Workload, waits: list[tuple[int, int, int]]) -> None:
    for u in range(len(workload.organizations)):
        of_u = [wait for other, wait, _ in waits if other == u]
        assert measures.mean_waits[u] == (Fraction(sum(of_u), len(of_u)) if of_u else None)
    lengths = sorted(wait for _, wait, _ in waits)
    assert measures.mean_wait == Fraction(sum(lengths), len(lengths))
    assert measures.wait_95th_percentile == lengths[ceil(Fraction(95, 100) * len(lengths)) - 1]
    slowdowns = [max(Fraction(1), Fraction(wait + p, max(p, 10))) for _, wait, p in waits]
    mean = float(sum(slowdowns) / len(slowdowns))
    assert measures.mean_bounded_slowdown == pytest.approx(mean, rel=1e-12)


def test_sums_beyond_64_bits_are_exact() -> None:
    """A century's half, a thousand million processors: ψ is about 10^27."""
    t, copies = 2**31 - 1, 10**9
    workload = workload_of_jobs([1], [Job(0, 0, t, copies), Job(0, 3, t, copies)], t)
    measures = measure(workload, schedule_of([(0, 0, copies), (1, 5, copies)]))
    assert measures.utilities == (copies * (t * (t + 1) // 2 + (t - 5) * (t - 4) // 2),)
    assert measures.parts == (copies * (t + t - 5),)
    assert measures.mean_wait == 1


def test_windows_of_millennia_are_measured_exactly() -> None:
    t = 2**37
    measures = measure(workload_of_jobs([1], [Job(0, 0, t)], t), schedule_of([(0, 3, 1)]))
    assert measures.utilities == ((t - 3) * (t - 2) // 2,)
    assert measures.parts == (t - 3,)


def test_what_cannot_be_summed_exactly_is_refused() -> None:
    wide = workload_of_jobs([1], [Job(0, 0, 1, 2**62), Job(0, 0, 1, 2**62)], 10)
    with pytest.raises(ReplayError, match=r"the jobs ask for 9\.22e\+18 processors") as caught:
        measure(wide, schedule_of([(0, 0, 1)]))
    assert caught.value.remedy is Remedy.SHORTER_WINDOW


def test_unfairness_is_the_mean_unjustified_delay_of_a_part() -> None:
    workload = workload_of_jobs([1, 1], [Job(0, 0, 4), Job(1, 0, 6)], 20)
    fair = measure(workload, schedule_of([(0, 0, 1), (1, 0, 1)]))
    late = measure(workload, schedule_of([(1, 0, 1), (0, 5, 1)]))
    assert unfairness(fair, fair) == 0
    assert drifts(late, fair) == (Fraction(-5 * 4, 10), Fraction(0))
    assert unfairness(late, fair) == 2


@given(example=scheduled(), later=st.integers(1, 9))
def test_delaying_jobs_is_never_worth_anything(
    example: tuple[Workload, list[Batch]], later: int
) -> None:
    workload, batches = example
    delayed = [(job, start + later, copies) for job, start, copies in batches]
    before = measure(workload, schedule_of(batches)).utilities
    after = measure(workload, schedule_of(delayed)).utilities
    assert all(one >= other for one, other in zip(before, after, strict=True))


def test_the_order_of_batches_does_not_matter() -> None:
    workload = workload_of_jobs([2, 1], [Job(0, 0, 3, 2), Job(1, 1, 5), Job(1, 2, 30)], 20)
    batches = [(0, 0, 1), (0, 2, 1), (1, 1, 1), (2, 3, 1)]
    forwards = measure(workload, schedule_of(batches))
    backwards = measure(workload, schedule_of(batches[::-1]))
    assert replace(backwards, mean_bounded_slowdown=0.0) == replace(
        forwards, mean_bounded_slowdown=0.0
    )
