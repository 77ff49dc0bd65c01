"""The game: which jobs and which processors each organization brings, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.errors import ReplayError
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.workloads.bays import COUNT_BITS, LARGEST_COUNT, Bays
from shapleyprio.replay.workloads.choices import Backfill, Wide
from shapleyprio.replay.workloads.nodes import MOST_PLACES
from shapleyprio.replay.workloads.workload import Workload

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LATEST_END = (NEVER >> COUNT_BITS) - 1
"""A later second does not fit into one number with processors, as passes have them."""


class GameError(ReplayError):
    """A game has later ends, or more processors or bays, than coalitions of it can hold."""


@dataclass(frozen=True)
class Game:
    """Jobs and processors of k organizations; a coalition has those of its members.

    What `wide`, `backfill` and `bays` say is so in every coalition. A job that is kept whole and
    needs more processors than a coalition has is worth nothing to it.

    Attributes:
        organization: int64[jobs], index of each job's organization.
        release: int64[jobs], second of its release; never falling.
        processing_time, processors: int64[jobs], above 0.
        since: int64[changes], seconds at which processors change; rising, the first is the
            game's begin and no job is released earlier.
        owned: int64[changes, k], processors of each organization from that second on.
        until: the second at which coalitions are valued, not before the begin.
        horizon: age in seconds from which a part gains no more worth; None for never.
        certain: int64[jobs], seconds of each processing time that are known: all of it once the
            job has ended, those elapsed while it runs, 0 before; below the processing time where
            that is a guess. None if all have ended. The values do not depend on it: it says what
            can be remembered for a later game.
        limit: int64[jobs], requested processing time, by which backfilling expects ends; UNKNOWN
            where there is none, None if no job has one. Then it expects the processing time.
        wide: "expand": a job of q processors is q copies that need one processor each; "rigid": it
            needs all q at once.
        backfill: what may pass a rigid job that does not fit, as in `Workload`.
        bays: which processors each job may have; None if all.
        unions: as in `Workload`.
        owned_in: int64[changes, bays, k], the owned processors by bay; None if `bays` has them,
            for they never change.

    Raises:
        GameError: a job ends too late, or there are too many processors or bays.
        ValueError: releases or changes are not in order, or a job ended before what is certain.
    """

    organization: Ints
    release: Ints
    processing_time: Ints
    processors: Ints
    since: Ints
    owned: Ints
    until: int
    horizon: int | None = None
    certain: Ints | None = None
    limit: Ints | None = None
    wide: Wide = "expand"
    backfill: Backfill = "none"
    bays: Bays | None = None
    unions: tuple[int, ...] | None = None
    owned_in: Ints | None = None

    def __post_init__(self) -> None:
        begin = int(self.since[0])
        if (np.diff(self.release) < 0).any() or (np.diff(self.since) <= 0).any():
            raise ValueError("jobs must be in order of release, changes of processors in time")
        if self.until < begin or (len(self.release) and int(self.release[0]) < begin):
            raise ValueError("nothing can happen before the game begins")
        if self.certain is not None and (self.certain > self.processing_time).any():
            raise ValueError("no processing time is shorter than what is certain of it")
        if (self.by_bay.sum(axis=1) != self.owned).any():
            raise ValueError("bays must have all processors")
        if self.until + int(self.processing_time.max(initial=0)) > LATEST_END:
            raise GameError(f"a job ends after second {LATEST_END}")
        most = int(self.owned.sum(axis=1).max())
        if most > LARGEST_COUNT:
            raise GameError(f"{most} processors are more than {LARGEST_COUNT}")
        if self.bays is not None and self.by_bay[0].size > MOST_PLACES:
            raise GameError(
                f"partitions cut the nodes into {self.by_bay.shape[1]} bays; with "
                f"{self.organizations} organizations a game takes "
                f"{MOST_PLACES // self.organizations}"
            )

    @property
    def is_wide(self) -> bool:
        """Whether values may exceed 63 bits, so that they are computed with two limbs."""
        length, most = self.until - int(self.since[0]), int(self.owned.sum(axis=1).max())
        return most * length * (length + 1) >= 2**63

    @property
    def organizations(self) -> int:
        """How many there are: k."""
        return int(self.owned.shape[1])

    @cached_property
    def by_bay(self) -> Ints:
        """int64[changes, bays, k], the owned processors by bay; one has all if there are none."""
        if self.owned_in is not None:
            return self.owned_in
        return self.owned[:, None] if self.bays is None else self.bays.owned[None]

    @cached_property
    def everybody(self) -> Bools:
        """bool[1, k], the coalition of all."""
        return np.ones((1, self.organizations), dtype=np.bool_)


def game_of(workload: Workload, *, until: int | None = None) -> Game:
    """Returns the game of a workload that begins with an empty system.

    Args:
        workload: its jobs; those released after `until` are left out.
        until: second of the window, None for its end.
    """
    end = workload.window.length if until is None else until
    order = np.lexsort((workload.position, workload.release))
    order = order[workload.release[order] <= end]
    return game_with(workload, order, workload.processing_time[order], until=end)


def game_with(
    workload: Workload,
    jobs: Ints,
    processing_time: Ints,
    *,
    until: int,
    certain: Ints | None = None,
) -> Game:
    """Returns the game of some jobs of a workload.

    Args:
        workload: which is scheduled.
        jobs: int64[n], indices of its jobs in order of release.
        processing_time: int64[n], of these, as far as it is known.
        until: second of the window.
        certain: int64[n], as in `Game`.
    """
    bays = workload.bays
    return Game(
        organization=workload.organization[jobs].astype(np.int64),
        release=workload.release[jobs],
        processing_time=processing_time,
        processors=workload.processors[jobs],
        since=np.zeros(1, dtype=np.int64),
        owned=workload.owned[None, :],
        until=until,
        horizon=workload.horizon,
        certain=certain,
        limit=workload.limit[jobs],
        wide=workload.wide,
        backfill=workload.backfill,
        unions=workload.unions,
        bays=None if bays is None else bays.of_jobs(jobs),
    )
