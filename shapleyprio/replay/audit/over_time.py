"""Work for each other, and everybody's use and contribution, as time went by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shapleyprio.common.errors import Remedy, ReplayError
from shapleyprio.fairness.utility import Moments
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload

MOST_PERIODS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A stretch of the window; one entry of each tuple for each organization.

    Attributes:
        start, end: seconds from the window's begin.
        used: processor-seconds that its jobs executed in the period.
        contributed: processor-seconds executed on its processors, whoever's jobs they were.
        utilities: ψ at the period's end, of all since the window's begin, in part-seconds.
        contributions: φ̃ at the period's end, likewise.

    `contributed` and `contributions` are None if owners are not known.
    """

    start: int
    end: int
    used: tuple[int, ...]
    contributed: tuple[int, ...] | None
    utilities: tuple[int, ...]
    contributions: tuple[int, ...] | None

    @property
    def lent(self) -> tuple[int, ...] | None:
        """Processor-seconds contributed less used; None if owners are not known."""
        if self.contributed is None:
            return None
        return tuple(
            contributed - used
            for contributed, used in zip(self.contributed, self.used, strict=True)
        )


def carried(workload: Workload, schedule: Schedule) -> tuple[tuple[int, ...], ...]:
    """Sums each organization's processor-seconds in the window by the owner of the processors.

    Returns:
        A row for each organization whose jobs they were; in it a column for each owner, and a
        last one for processors that belong to none of them.
    """
    k, length = len(workload.organizations), workload.window.length
    executed = np.minimum(workload.processing_time[schedule.job], length - schedule.start)
    _refuse_what_would_wrap(executed, schedule)
    sums = np.zeros((k, k + 1), dtype=np.int64)
    owner = np.where(schedule.owner == UNKNOWN, k, schedule.owner)
    np.add.at(sums, (workload.organization[schedule.job], owner), executed * schedule.copies)
    return tuple(tuple(row) for row in sums.tolist())


def periods(workload: Workload, schedule: Schedule, seconds: int) -> tuple[Period, ...]:
    """Returns what everybody used and contributed in each period from the window's begin on.

    Args:
        workload: what was scheduled.
        schedule: of it; starts lie in the window.
        seconds: of each period; the last one ends with the window.

    Raises:
        ReplayError: there would be more than `MOST_PERIODS`.
    """
    length = workload.window.length
    if -(-length // seconds) > MOST_PERIODS:
        raise ReplayError(
            f"{-(-length // seconds)} periods of {seconds} s in the window; an audit takes "
            f"{MOST_PERIODS} at most",
            Remedy.PERIOD_AT_LEAST,
            bound=-(-length // MOST_PERIODS),
        )
    ends = [*range(seconds, length, seconds), length]
    use = _standings(workload, schedule, workload.organization[schedule.job], ends)
    if schedule.contribution is None:
        work = None
    else:
        work = _standings(workload, schedule, schedule.owner, ends)
    return tuple(
        Period(
            start=start,
            end=end,
            used=_growth(use, i),
            contributed=None if work is None else _growth(work, i),
            utilities=use[i].worth,
            contributions=None if work is None else work[i].worth,
        )
        for i, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
    )


@dataclass(frozen=True, slots=True)
class _Standing:
    """Parts completed by a moment, and their worth then, of each organization."""

    parts: tuple[int, ...]
    worth: tuple[int, ...]


def _growth(standings: Sequence[_Standing], i: int) -> tuple[int, ...]:
    if i == 0:
        return standings[0].parts
    return tuple(
        now - before for now, before in zip(standings[i].parts, standings[i - 1].parts, strict=True)
    )


def _standings(
    workload: Workload,
    schedule: Schedule,
    whose: np.ndarray[tuple[int], np.dtype[np.int32]],
    ends: Sequence[int],
) -> list[_Standing]:
    """Returns each one's parts at some ascending seconds, entries counted to whom `whose` names."""
    moments = [Moments() for _ in workload.organizations]
    events = _events(workload, schedule, whose)
    coming = next(events, None)
    found = []
    for end in ends:
        while coming is not None and coming[0] <= end:
            second, u, processors = coming
            moments[u].add(second, processors)
            coming = next(events, None)
        parts = tuple(each.parts(end) for each in moments)
        found.append(_Standing(parts, tuple(each.worth(end) for each in moments)))
    return found


def _events(
    workload: Workload, schedule: Schedule, whose: np.ndarray[tuple[int], np.dtype[np.int32]]
) -> Iterator[tuple[int, int, int]]:
    """Returns (second, organization, processors that start or, negative, stop) in order of time."""
    known = whose != UNKNOWN
    start, copies = schedule.start[known], schedule.copies[known]
    end = start + workload.processing_time[schedule.job[known]]
    second = np.concatenate((start, end))
    order = np.argsort(second, kind="stable")
    columns = (second, np.tile(whose[known], 2), np.concatenate((copies, -copies)))
    return zip(*(column[order].tolist() for column in columns), strict=True)


def _refuse_what_would_wrap(
    executed: np.ndarray[tuple[int], np.dtype[np.int64]], schedule: Schedule
) -> None:
    if float((executed.astype(np.float64) * schedule.copies).sum()) >= 2.0**62:
        raise ReplayError(
            "the jobs worked for more processor-seconds than fit into 62 bits",
            Remedy.SHORTER_WINDOW,
        )
