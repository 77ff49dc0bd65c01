"""Schedules over time, and who ran where: exact sums of few numbers from many jobs.

Between two events a sum of worths is a quadratic polynomial (`fairness.worth.Moments`), so the
events before each moment that is shown, summed once, give its exact value there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.worth import Moments
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.measures import LONG_WINDOW, percentile, sums, waits
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload

Rows = tuple[tuple[int, ...], ...]
"""Values of each organization at each moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A schedule at some moments.

    Attributes:
        moments: seconds of the window, increasing.
        utilities: exact ψ of each organization at each moment, in part-seconds.
        parts: unit-size parts completed of each organization's jobs.
        contributions: exact φ̃, the worth of the parts executed on each organization's
            processors; None where their owners are unknown.
        contributed: how many parts that are; None likewise.
    """

    moments: tuple[int, ...]
    utilities: Rows
    parts: Rows
    contributions: Rows | None
    contributed: Rows | None


def even_moments(length: int, count: int) -> tuple[int, ...]:
    """Returns at most `count` + 1 moments from 0 to the window's end, as even as seconds allow."""
    pieces = min(count, length)
    return tuple(length * piece // pieces for piece in range(pieces + 1))


def series_of(workload: Workload, schedule: Schedule, moments: Sequence[int]) -> Series:
    """Sums a schedule up at each of the moments.

    Args:
        workload: what was scheduled.
        schedule: what became of it.
        moments: increasing seconds, within the window.
    """
    organization = workload.organization[schedule.job]
    utilities, parts = _worths_and_parts(workload, schedule, organization, moments)
    contributions = contributed = None
    if schedule.contribution is not None:
        contributions, contributed = _worths_and_parts(workload, schedule, schedule.owner, moments)
    return Series(
        moments=tuple(moments),
        utilities=utilities,
        parts=parts,
        contributions=contributions,
        contributed=contributed,
    )


def drift_of(series: Series, fair: Series) -> tuple[tuple[float | None, ...], ...]:
    """Returns each organization's (ψ(u) − ψ*(u)) / p_tot* at each moment, in seconds.

    Args:
        series: of any schedule.
        fair: of Ref's, at the same moments.

    Returns:
        None where no part is completed yet.
    """
    totals = [sum(column) for column in zip(*fair.parts, strict=True)]
    return tuple(
        tuple(
            float(Fraction(ours - due, total)) if total else None
            for ours, due, total in zip(mine, its, totals, strict=True)
        )
        for mine, its in zip(series.utilities, fair.utilities, strict=True)
    )


def utilization_of(series: Series, processors: int) -> tuple[tuple[float, ...], ...]:
    """Returns the part of all processors that each one's jobs kept busy from moment to moment."""
    m = series.moments
    return tuple(
        tuple((row[i + 1] - row[i]) / (processors * (m[i + 1] - m[i])) for i in range(len(m) - 1))
        for row in series.parts
    )


def executed_where(workload: Workload, schedule: Schedule) -> Rows:
    """Counts the parts executed in the window, of each one's jobs on each one's processors.

    Returns:
        A row for each organization whose jobs they were; in it one number for each owner, and
        a last one for the parts that ran on processors whose owner is not known.
    """
    k, length = len(workload.organizations), workload.window.length
    seen = schedule.start < length
    job, start = schedule.job[seen], schedule.start[seen]
    executed = np.minimum(workload.processing_time[job], length - start)
    owner = np.where(schedule.owner[seen] == UNKNOWN, k, schedule.owner[seen])
    cells = workload.organization[job].astype(np.int64) * (k + 1) + owner
    totals = sums(executed, schedule.copies[seen], cells.astype(np.int32), k * (k + 1))
    return tuple(totals[u * (k + 1) : (u + 1) * (k + 1)] for u in range(k))


def waits_of(
    workload: Workload, schedule: Schedule, percents: Sequence[int]
) -> tuple[tuple[int, ...] | None, ...]:
    """Returns percentiles of each organization's waits, in seconds, counted as in `measure`.

    Args:
        workload: what was scheduled.
        schedule: what became of it.
        percents: so many per cent of the jobs do not wait longer.

    Returns:
        None for an organization without jobs.
    """
    seen = schedule.start < workload.window.length
    waiting = waits(workload, schedule.job[seen], schedule.start[seen], schedule.copies[seen])
    found: list[tuple[int, ...] | None] = []
    for u in range(len(workload.organizations)):
        mine = np.flatnonzero(waiting.organization == u)
        wait, weight = waiting.wait[mine], waiting.weight[mine]
        ordered = tuple(percentile(wait, weight, p) for p in percents) if len(mine) else None
        found.append(ordered)
    return tuple(found)


def _moments_of(
    workload: Workload, schedule: Schedule, groups: NDArray[np.int32], moments: Sequence[int]
) -> list[list[Moments]]:
    """Returns for each organization the moments of all events until each requested second."""
    count, steps = len(workload.organizations), len(moments)
    end = schedule.start + workload.processing_time[schedule.job]
    second = np.concatenate((schedule.start, end))
    processors = np.concatenate((schedule.copies, -schedule.copies))
    group = np.concatenate((groups, groups))
    counted = (second <= moments[-1]) & (group != UNKNOWN)
    second, processors, group = second[counted], processors[counted], group[counted]
    step = np.searchsorted(np.array(moments), second)
    if moments[-1] >= LONG_WINDOW:  # the square of a second may not fit into 63 bits
        second = second.astype(object)
    cell = (group.astype(np.int64) * steps + step).astype(np.int32)
    totals = [
        sums(values, processors, cell, count * steps)
        for values in (np.ones_like(second), second, second * second)
    ]
    return [
        [
            Moments(*until)
            for until in zip(
                *(accumulate(total[u * steps : (u + 1) * steps]) for total in totals), strict=True
            )
        ]
        for u in range(count)
    ]


def _worths_and_parts(
    workload: Workload, schedule: Schedule, groups: NDArray[np.int32], moments: Sequence[int]
) -> tuple[Rows, Rows]:
    """Returns the worth of the parts of each organization at each second, and their number."""
    totals = _moments_of(workload, schedule, groups, moments)
    parts = tuple(
        tuple(until.parts(t) for until, t in zip(row, moments, strict=True)) for row in totals
    )
    worths = _worths(totals, moments)
    if workload.horizon is None:
        return worths, parts
    ago = [t - workload.horizon for t in moments]
    older = _worths(_moments_of(workload, schedule, groups, ago), ago)
    less = tuple(
        tuple(all_of - more for all_of, more in zip(row, beyond, strict=True))
        for row, beyond in zip(worths, older, strict=True)
    )
    return less, parts


def _worths(rows: list[list[Moments]], moments: Sequence[int]) -> Rows:
    return tuple(
        tuple(totals.worth(t) for totals, t in zip(row, moments, strict=True)) for row in rows
    )
