"""Everybody's use and contribution as time went by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shapleyprio.common.errors import Remedy, ReplayError
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.series import Rows, series_of
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
    ends = (*range(seconds, length, seconds), length)
    found = series_of(workload, schedule, ends)
    unknown = [None] * len(ends)
    return tuple(
        Period(
            start=start,
            end=end,
            used=used,
            contributed=contributed,
            utilities=utilities,
            contributions=contributions,
        )
        for start, end, used, contributed, utilities, contributions in zip(
            (0, *ends[:-1]),
            ends,
            _growth(found.parts),
            unknown if found.contributed is None else _growth(found.contributed),
            zip(*found.utilities, strict=True),
            unknown if found.contributions is None else zip(*found.contributions, strict=True),
            strict=True,
        )
    )


def _growth(rows: Rows) -> Iterator[tuple[int, ...]]:
    """Yields by how much the number of each organization grew until each moment since the last."""
    before = (0,) * len(rows)
    for now in zip(*rows, strict=True):
        yield tuple(new - old for new, old in zip(now, before, strict=True))
        before = now
