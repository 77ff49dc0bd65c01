"""Jobs behind others, by dependencies or limits: released in each future at another second."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.bay_state import FOLLOWING, PARTITION, BaySchedules
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload

After = Mapping[int, tuple[int, ...]]
"""Job -> those that have to end before it is released."""


def releasable(after: After) -> frozenset[int]:
    """Returns the dependent jobs that are released some day.

    Jobs that are behind themselves are left out, and those behind them.

    >>> sorted(releasable({2: (1,), 3: (2, 1, 2), 9: (9,), 8: (9,), 4: (0,), 5: (3, 8)}))
    [2, 3, 4]
    """
    behind: dict[int, list[int]] = {}
    for job, others in after.items():
        for other in others:
            behind.setdefault(other, []).append(job)
    missing = {job: len(others) for job, others in after.items()}
    ended = [job for job in behind if job not in after]
    for job in ended:
        for one in behind.get(job, ()):
            missing[one] -= 1
            if not missing[one]:
                ended.append(one)
    return frozenset(job for job, left in missing.items() if not left)


class Limited(NamedTuple):
    """Jobs of which a limit lets no more run at once than run now.

    Attributes:
        running: some jobs.
        waiting: those that the limit keeps back, the first one first.
        by_processors: whether it limits processors, not how many jobs run.
    """

    running: tuple[int, ...]
    waiting: tuple[int, ...]
    by_processors: bool


def kept_back(limited: Iterable[Limited], ends: Ints, processors: Ints) -> After:
    """Returns which jobs have to end before those start that limits keep back.

    The first takes the place of what ends first, those for which nothing is left take that of the
    ones ahead of them. Where that is not enough the limit is wider than what is known to run, and
    nothing more has to end.

    Args:
        limited: jobs, by number.
        ends: int64[jobs], when those end that run.
        processors: int64[jobs].

    >>> kept_back([Limited((0, 1), (2, 3, 4), False)], np.array([9, 5]), np.ones(5, dtype=int))
    {2: (1,), 3: (0,), 4: (2,)}
    >>> kept_back([Limited((0, 1), (2,), True)], np.array([9, 5]), np.array([2, 1, 2]))
    {2: (1, 0)}
    """
    after = {}
    for running, waiting, by_processors in limited:
        sizes = processors.tolist() if by_processors else [1] * len(processors)
        places = deque((job, sizes[job]) for job in sorted(running, key=ends.__getitem__))
        for job in waiting:
            before, missing = [], sizes[job]
            while missing > 0 and places:
                other, left = places.popleft()
                before.append(other)
                missing -= left
                if missing < 0:
                    places.appendleft((other, -missing))
            after[job] = tuple(before)
            places.append((job, sizes[job]))
    return after


def behind_others(after: After, workload: Workload, bays: BaySchedules) -> BaySchedules:
    """Returns bays that have dependent jobs in their queues only when these are released.

    Args:
        after: by the numbers that the jobs have in the workload.
        workload: its jobs.
        bays: of that workload, in which nothing has happened yet.
    """
    known = np.flatnonzero(workload.job != UNKNOWN)
    place = np.empty(len(known), dtype=np.int64)
    place[workload.job[known]] = known
    pairs = [(other, job) for job, others in after.items() for other in others]
    other, job = place[np.array(pairs)].T
    missing = np.zeros(len(workload.job), dtype=np.int64)
    np.add.at(missing, job, workload.processors[other])
    order = np.lexsort((job, other))
    queue = workload.organization * len(bays.reach) + bays.jobs[:, PARTITION]
    left = np.flatnonzero((workload.start == UNKNOWN) & (missing == 0))
    chain = left[np.argsort(queue[left], kind="stable")]
    goes_on = queue[chain[1:]] == queue[chain[:-1]]
    bays.jobs[chain[:-1], FOLLOWING] = np.where(goes_on, chain[1:], -1)
    bays.jobs[chain[-1:], FOLLOWING] = -1
    return bays._replace(
        missing=missing,
        first_behind=np.searchsorted(other[order], np.arange(len(missing) + 1)),
        behind=job[order],
    )


def independent(bays: BaySchedules, workload: Workload) -> NDArray[np.bool_]:
    """Returns bool[jobs], which jobs are behind no others."""
    if not len(bays.missing):
        return np.ones(len(workload.job), dtype=np.bool_)
    found: NDArray[np.bool_] = bays.missing == 0
    return found
