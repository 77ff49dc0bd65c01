"""Dependent jobs: they are released when others have ended, in each future at another second.

What is released at a second changes nothing before it. So a future that is played again, with every
release where the others ended the last time, is right up to one more release each time, and soon
nothing changes any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from shapleyprio.common.wording import DAY
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.forecasts.arrivals import LONGEST
from shapleyprio.replay.forecasts.present import After, Present

MOST_IN_A_ROW = 4
"""So many jobs depend on each other one after the other at most, ..."""

MOST_PLAYS = 8
"""... and so often a future is played."""


def releasable(after: After) -> frozenset[int]:
    """Returns the dependent jobs that are released some day.

    Jobs that are behind too many others one after the other, or behind themselves, are left out.

    >>> sorted(releasable({2: (1,), 3: (2, 1), 9: (9,), 8: (9,), 4: (0,)}))
    [2, 3, 4]
    """
    left = dict(after)
    for _ in range(MOST_IN_A_ROW):
        for job in [job for job, others in left.items() if left.keys().isdisjoint(others)]:
            del left[job]
    return frozenset(after.keys() - left.keys())


def with_releases(
    present: Present,
    dependent: Collection[int],
    lengths: Ints,
    wanted: Ints,
    starts_of: Callable[[Present, Ints], Ints],
) -> Ints:
    """Plays a future in which dependent jobs are released when those have ended before them.

    Args:
        present: where it begins.
        dependent: its jobs that are `releasable`.
        lengths: int64[jobs of the present], processing times.
        wanted: int64[...], jobs whose starts are wanted.
        starts_of: plays it: returns int64[jobs of the present], when each starts, of which some
            are wanted.

    Returns:
        int64[jobs of the present], when each starts; NEVER for later than any future.
    """
    never = present.t + (LONGEST + 1) * DAY
    before = {other for job in dependent for other in present.after[job]}
    wanted = np.array(sorted({*wanted.tolist(), *before}), dtype=np.int64)
    release = present.jobs.release.copy()
    release[list(present.after)] = never
    for _ in range(MOST_PLAYS):
        now = replace(present, jobs=replace(present.jobs, release=release))
        starts = starts_of(now, wanted[release[wanted] < never])
        ends = np.where(starts == NEVER, never, np.minimum(starts, never) + lengths)
        known, release = release, release.copy()
        for job in dependent:
            behind = int(ends[list(present.after[job])].max())
            release[job] = min(max(behind, present.t + 1), never)
        if (known == release).all():
            break
    return starts
