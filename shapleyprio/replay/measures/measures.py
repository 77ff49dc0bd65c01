"""The worth of a schedule to each organization, and jobs' waits: exact where the theory is.

Everything is taken at the window's end; what starts then or later has not started. Schedules
hold copies in batches, and so the sums here weight batches: millions of copies stay small.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.errors import Remedy, ReplayError
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload

LONG_WINDOW = 2**31
"""Seconds; below it the worth of one copy fits into 63 bits."""

MOST_COPIES = 2**61
"""Below it a sum of one bit of each copy's worth fits into 63 bits."""

LIMB = 21
"""Bits of the pieces in which large values are summed, at most."""

BOUND = 10
"""Seconds that a job counts as at least in its bounded slowdown."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What a schedule is at the window's end.

    With wide jobs expanded every copy counts as a job in means and percentiles; a rigid job
    counts once. A job that has not started counts with its wait so far.

    Attributes:
        utilities: exact ψsp (SPAA 2013, Eq. 3) of each organization's jobs, in part-seconds, by
            the workload's horizon.
        parts: unit-size parts completed of each organization's jobs.
        mean_waits: seconds, of each organization's jobs; None where it has no jobs.
        mean_wait, wait_95th_percentile: seconds, of all jobs.
        mean_bounded_slowdown: of max(1, (wait + processing time) / max(processing time, 10 s)).
        utilization: parts completed by part that the processors could have completed.
    """

    utilities: tuple[int, ...]
    parts: tuple[int, ...]
    mean_waits: tuple[Fraction | None, ...]
    mean_wait: Fraction
    wait_95th_percentile: int
    mean_bounded_slowdown: float
    utilization: Fraction

    @property
    def p_tot(self) -> int:
        """Unit-size parts completed of all jobs."""
        return sum(self.parts)


def measure(workload: Workload, schedule: Schedule) -> Measures:
    """Measures a schedule of a workload.

    Raises:
        ReplayError: there are too many copies.
    """
    length = workload.window.length
    _refuse_what_would_wrap(workload)
    seen = schedule.start < length
    job, start, copies = schedule.job[seen], schedule.start[seen], schedule.copies[seen]
    organization = workload.organization[job]
    count = len(workload.organizations)
    executed, worth = _by_the_end(workload, job, start)
    parts = sums(executed, copies, organization, count)
    waiting = waits(workload, job, start, copies)
    waited = sums(waiting.wait, waiting.weight, waiting.organization, count)
    jobs = sums(np.ones_like(waiting.wait), waiting.weight, waiting.organization, count)
    return Measures(
        utilities=sums(worth, copies, organization, count),
        parts=parts,
        mean_waits=tuple(
            Fraction(seconds, number) if number else None
            for seconds, number in zip(waited, jobs, strict=True)
        ),
        mean_wait=Fraction(sum(waited), sum(jobs)),
        wait_95th_percentile=percentile(waiting.wait, waiting.weight, 95),
        mean_bounded_slowdown=waiting.bounded_slowdown() / sum(jobs),
        utilization=Fraction(sum(parts), workload.system_processors * length),
    )


def contributed(workload: Workload, schedule: Schedule) -> tuple[int, ...]:
    """Returns φ̃: the exact worth of all that was executed on each organization's processors.

    Raises:
        ReplayError: as for `measure`.
    """
    _refuse_what_would_wrap(workload)
    seen = (schedule.start < workload.window.length) & (schedule.owner != UNKNOWN)
    _, worth = _by_the_end(workload, schedule.job[seen], schedule.start[seen])
    count = len(workload.organizations)
    return sums(worth, schedule.copies[seen], schedule.owner[seen], count)


def unfairness(measures: Measures, reference: Measures) -> Fraction:
    """Returns Σ|ψ − ψ*| / p_tot*: a part's average unjustified delay or speed-up, in seconds.

    Args:
        measures: of any schedule.
        reference: of Ref's schedule of the same workload.
    """
    return sum(map(abs, drifts(measures, reference)), Fraction(0))


def drifts(measures: Measures, reference: Measures) -> tuple[Fraction, ...]:
    """Returns each organization's (ψ(u) − ψ*(u)) / p_tot*: its signed part of the unfairness.

    Args:
        measures: of any schedule.
        reference: of Ref's schedule of the same workload.
    """
    return tuple(
        Fraction(ours - fair, reference.p_tot)
        for ours, fair in zip(measures.utilities, reference.utilities, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Waits:
    """Jobs (or, if not rigid, copies) that waited alike.

    Attributes:
        organization: int32, whose they are.
        wait: int64, seconds until their start or so far.
        processing_time: int64, seconds of each.
        weight: int64, how many they are.
    """

    organization: NDArray[np.int32]
    wait: Integers
    processing_time: Integers
    weight: Integers

    def bounded_slowdown(self) -> float:
        """Returns the sum of max((wait + processing time) / max(processing time, `BOUND`), 1)."""
        bounded = np.maximum(self.processing_time, BOUND)
        slowdown = np.maximum(
            np.add(self.wait, self.processing_time, dtype=np.float64) / bounded, 1
        )
        return float((slowdown * self.weight).sum())


def waits(workload: Workload, job: Integers, start: Integers, copies: Integers) -> Waits:
    """Returns how long jobs waited, those that did not start in the window until its end.

    Args:
        workload: what was scheduled.
        job: indices into the workload, as in a schedule.
        start: seconds of the window; all before its end.
        copies: how many started then.
    """
    if workload.wide == "rigid":
        job, first = np.unique(job, return_index=True)
        start, weight = start[first], np.ones_like(job)
        wanted = np.ones_like(workload.job)
    else:
        weight, wanted = copies, workload.processors
    started = np.zeros_like(wanted)
    np.add.at(started, job, weight)
    rest = np.flatnonzero(started < wanted)
    jobs = np.concatenate((job, rest))
    until = np.concatenate((start, np.full(len(rest), workload.window.length)))
    return Waits(
        organization=workload.organization[jobs],
        wait=until - workload.release[jobs],
        processing_time=workload.processing_time[jobs],
        weight=np.concatenate((weight, (wanted - started)[rest])),
    )


def _by_the_end(workload: Workload, job: Integers, start: Integers) -> tuple[Integers, Integers]:
    """Returns how many parts one copy of each job executes by the window's end, and their worth."""
    age = workload.window.length - start
    executed = np.minimum(workload.processing_time[job], age)
    if workload.window.length >= LONG_WINDOW:
        executed, age = executed.astype(object), age.astype(object)
    worth = executed * age - executed * (executed - 1) // 2
    if workload.horizon is not None:
        beyond = age - workload.horizon
        older = np.minimum(np.maximum(beyond, 0), executed)
        worth -= older * beyond - older * (older - 1) // 2
    return executed, worth


def _refuse_what_would_wrap(workload: Workload) -> None:
    copies = workload.processors.sum(dtype=np.float64)
    if copies >= MOST_COPIES:
        raise ReplayError(
            f"the jobs ask for {copies:.3g} processors in all, sums are exact for less than "
            f"{MOST_COPIES}",
            Remedy.SHORTER_WINDOW,
        )


def sums(
    values: Integers, weights: Integers, groups: NDArray[np.int32], count: int
) -> tuple[int, ...]:
    """Returns the exact Σ value·weight of each group; no value is below 0.

    64 bits would wrap, so pieces of the values are summed apart and put together as Python's
    integers.
    """
    totals = [0] * count
    limb = min(LIMB, 62 - int(np.abs(weights).sum()).bit_length())
    for shift in range(0, int(values.max(initial=0)).bit_length(), limb):
        of_limb = np.zeros(count, dtype=np.int64)
        piece = (values >> shift & (1 << limb) - 1).astype(np.int64)
        np.add.at(of_limb, groups, piece * weights)
        totals = [total + (int(limb) << shift) for total, limb in zip(totals, of_limb, strict=True)]
    return tuple(totals)


def percentile(values: Integers, weights: Integers, percent: int) -> int:
    """Returns the smallest value that at least so many per cent do not exceed (nearest rank)."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    rank = -(-percent * int(below[-1]) // 100)
    return int(values[order][np.searchsorted(below, rank)])
