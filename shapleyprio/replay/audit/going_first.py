"""Members that bring next to nothing and always go first, as half of a split organization does.

A ranking sees members, not who is behind them. An organization gains if one member without nodes
has its urgent jobs, and another one the nodes and the rest of the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload

NEXT_TO_NOTHING = Fraction(1, 10)
"""A member brings next to nothing whose part of all processors is below this much of its part of
all work."""

ALWAYS = Fraction(9, 10)
"""Part of a member's jobs, of those that came while others waited, that are to have gone first."""

LEAST_JOBS = 20
"""Jobs that came while others waited; of a member with fewer of them nothing is said."""


@dataclass(frozen=True, slots=True)
class GoingFirst:
    """A member that brings next to nothing, and whose jobs go before others that came sooner.

    Attributes:
        organization: its index.
        brings: its part of all processors.
        uses: its part of the processor-seconds that all jobs of the window ask for.
        came: its jobs that came while a job of others waited which was no wider.
        went_first: how many of these began before such a job.
    """

    organization: int
    brings: Fraction
    uses: Fraction
    came: int
    went_first: int


def going_first(workload: Workload) -> tuple[GoingFirst, ...]:
    """Returns the members of a recorded schedule that bring next to nothing and always go first.

    Jobs that a narrower one passes do not count: that is backfilling, whoever's the jobs are.
    """
    began = np.where(workload.start == UNKNOWN, workload.window.length, workload.start)
    work = [0] * len(workload.organizations)
    jobs = (workload.organization, workload.processors, workload.processing_time)
    for u, processors, seconds in zip(*(column.tolist() for column in jobs), strict=True):
        work[u] += processors * seconds
    if not sum(work):
        return ()
    found = []
    for u, used in enumerate(work):
        brings = Fraction(int(workload.owned[u]), int(workload.owned.sum()))
        uses = Fraction(used, sum(work))
        if brings < NEXT_TO_NOTHING * uses:
            came, went_first = _passed(workload, began, u)
            if came >= LEAST_JOBS and went_first >= ALWAYS * came:
                found.append(GoingFirst(u, brings, uses, came, went_first))
    return tuple(found)


def _passed(workload: Workload, began: NDArray[np.int64], organization: int) -> tuple[int, int]:
    """Counts a member's jobs that came while others waited, and those that began before these."""
    ours = workload.organization == organization
    by_release = np.flatnonzero(~ours)
    by_release = by_release[np.argsort(workload.release[by_release], kind="stable")]
    came = went_first = 0
    for width in np.unique(workload.processors[ours]):
        others = by_release[workload.processors[by_release] <= width]
        latest = np.maximum.accumulate(np.append(-1, began[others]))
        mine = np.flatnonzero(ours & (workload.processors == width))
        sooner = np.searchsorted(workload.release[others], workload.release[mine])
        waiting_until = latest[sooner]  # the last begin of those that were released before
        waited = waiting_until > workload.release[mine]
        came += int(np.count_nonzero(waited))
        went_first += int(np.count_nonzero(waited & (began[mine] < waiting_until)))
    return came, went_first
