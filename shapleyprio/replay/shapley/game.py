"""The game: which jobs and which processors each organization brings, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shapleyprio.errors import ReplayError
from shapleyprio.replay.kernel.running import LARGEST_COUNT
from shapleyprio.replay.shapley.ends import LATEST_END
from shapleyprio.replay.workload import Workload

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class GameError(ReplayError):
    """A game has later ends or more processors than a pass over it can hold."""


@dataclass(frozen=True)
class Game:
    """Jobs and processors of k organizations; a coalition has those of its members.

    A job of q processors counts as q copies that need one processor each. In a coalition copies
    start in the order of jobs here, each as soon as it is released and a processor is free.

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

    Raises:
        GameError: a job ends too late, or there are too many processors.
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

    def __post_init__(self) -> None:
        begin = int(self.since[0])
        if (np.diff(self.release) < 0).any() or (np.diff(self.since) <= 0).any():
            raise ValueError("jobs must be in order of release, changes of processors in time")
        if self.until < begin or (len(self.release) and int(self.release[0]) < begin):
            raise ValueError("nothing can happen before the game begins")
        if self.certain is not None and (self.certain > self.processing_time).any():
            raise ValueError("no processing time is shorter than what is certain of it")
        if self.until + int(self.processing_time.max(initial=0)) > LATEST_END:
            raise GameError(f"a job ends after second {LATEST_END}")
        most = int(self.owned.sum(axis=1).max())
        if most > LARGEST_COUNT:
            raise GameError(f"{most} processors are more than {LARGEST_COUNT}")

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
    return Game(
        organization=workload.organization[order].astype(np.int64),
        release=workload.release[order],
        processing_time=workload.processing_time[order],
        processors=workload.processors[order],
        since=np.zeros(1, dtype=np.int64),
        owned=workload.owned[None, :],
        until=end,
        horizon=workload.horizon,
    )
