"""Dependent jobs: each is released when others have ended, in each future at another second."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shapleyprio.replay.engine.bay_state import FOLLOWING, BaySchedules
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


def behind_others(after: After, workload: Workload, bays: BaySchedules) -> BaySchedules:
    """Returns bays that have dependent jobs in their queues only when these are released.

    Args:
        after: by the numbers that the jobs have in the workload.
        workload: in which dependent jobs are not released before the end of its window.
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
    following = bays.jobs[:, FOLLOWING]
    following[missing[following] > 0] = -1  # −1 stays that, whatever job is the last
    return bays._replace(
        missing=missing,
        first_behind=np.searchsorted(other[order], np.arange(len(missing) + 1)),
        behind=job[order],
    )
