"""The state of coalitions whose jobs only get processors of some bays (`replay.bays`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.workloads.bays import Bays

PARTITION, FOLLOWING, ARRIVING = range(3)
FREE, WANTED, CLOSED = range(3)
SIZE, RESERVED, SPARE, OPEN, WAITING = range(5)
HEAD, REST, DEMAND, PASSED, LAST = range(5)


class BaySchedules(NamedTuple):
    """Bays, and what coalitions have in them.

    The jobs of organization u in partition p are a queue, number u · partitions + p. Columns:

    Attributes:
        reach: [p, x], whether a partition has a bay; a job takes processors of the first of them
            first.
        jobs: [jobs, 3], PARTITION, FOLLOWING: the next job of the same queue, −1 for the last one;
            ARRIVING: not of that job, but the job that comes in its place in order of release.
        bays: [c, x, 3], FREE: idle processors, fewer than none where fewer are
            left than are busy, WANTED: room for how many are asked for or missing, CLOSED: the
            moment at which the bay was last closed for a job that waits for it, −1 at first.
        partitions: [c, p, 5], SIZE: the most processors there ever are, RESERVED: until when what
            starts now has to end for a job of the partition, SPARE: processors that will then be
            left over, OPEN: those that a job of the partition could get now, WAITING: those that
            its waiting jobs need.
        queues: [c, q, 4], HEAD: the first job that has not started whole, the next one if none
            waits, REST: processors that its copies still need, all of them if it is rigid,
            DEMAND: processors that the waiting jobs need, PASSED: the moment at which the head was
            last passed over, −1 at first, LAST: the last job that waits, where some depend on
            others.
        unused: [k, x], processors of each organization in each bay, less those that work for it
            there, in the schedule that is written down.
        sharing: [p, p], whether two partitions have a bay in common.
        closes: [p], the second at which no job of a partition may run, NEVER if there is none; [0]
            if there is none for all.
        missing: [jobs], processors on which others have to end before a job is released that
            depends on them, −1 once it is; [0] if none does.
        first_behind: [jobs + 1], on job i depend behind[first_behind[i]] up to
            behind[first_behind[i + 1]].
        behind: jobs that depend on others.
        free_of: [x, k], idle processors of each owner, in the schedule that is
            written down.
        given: [k], room for how many of each a job gets in a bay.
    """

    reach: NDArray[np.bool_]
    jobs: Ints
    bays: Ints
    partitions: Ints
    queues: Ints
    unused: Ints
    sharing: NDArray[np.bool_]
    closes: Ints
    missing: Ints
    first_behind: Ints
    behind: Ints
    free_of: Ints
    given: Ints


def numbers_of(bays: Bays) -> int:
    """Returns how many numbers each coalition takes."""
    count, k = bays.owned.shape
    numbers: int = 3 * count + (5 + 5 * k) * len(bays.partitions)
    return numbers


def no_bays() -> BaySchedules:
    """Makes the state of coalitions whose jobs may get any processor."""
    none = np.zeros((0, 0), dtype=np.int64)
    return BaySchedules(
        reach=np.zeros((0, 0), dtype=np.bool_),
        jobs=none,
        bays=none,
        partitions=none,
        queues=none,
        unused=none,
        sharing=np.zeros((0, 0), dtype=np.bool_),
        closes=none.reshape(-1),
        missing=none.reshape(-1),
        first_behind=none.reshape(-1),
        behind=none.reshape(-1),
        free_of=none,
        given=none.reshape(-1),
    )


def schedules_in(
    bays: Bays, organization: Ints, release: Ints, takes_part: NDArray[np.bool_]
) -> BaySchedules:
    """Makes the state of coalitions in which nothing has happened yet.

    Args:
        bays: of processors.
        organization: [jobs], whose each one is.
        release: [jobs].
        takes_part: [c, k], whether organization u is a member.
    """
    partitions = len(bays.partitions)
    jobs = np.empty((len(bays.partition), 3), dtype=np.int64)
    jobs[:, PARTITION] = bays.partition
    queue = organization * partitions + bays.partition
    order = np.argsort(queue, kind="stable")
    jobs[:, FOLLOWING] = -1
    same = queue[order[:-1]] == queue[order[1:]]
    jobs[order[:-1][same], FOLLOWING] = order[1:][same]
    jobs[:, ARRIVING] = np.argsort(release, kind="stable")
    first = np.append(order, -1)[np.searchsorted(queue[order], np.arange(bays.queues))]
    free = takes_part @ bays.owned.T
    in_bays = np.zeros((*free.shape, 3), dtype=np.int64)
    in_bays[:, :, FREE], in_bays[:, :, CLOSED] = free, -1
    of_partitions = np.zeros((len(free), partitions, 5), dtype=np.int64)
    of_partitions[:, :, SIZE] = of_partitions[:, :, OPEN] = free @ bays.reach.T
    queues = np.zeros((len(free), bays.queues, 5), dtype=np.int64)
    queues[:, :, HEAD], queues[:, :, PASSED] = first, -1
    none = np.zeros(0, dtype=np.int64)
    return BaySchedules(
        reach=np.ascontiguousarray(bays.reach),
        jobs=jobs,
        bays=in_bays,
        partitions=of_partitions,
        queues=queues,
        unused=np.array(bays.owned.T, order="C"),
        sharing=np.ascontiguousarray(bays.sharing),
        closes=none,
        missing=none,
        first_behind=none,
        behind=none,
        free_of=np.array(bays.owned, order="C"),
        given=np.zeros(bays.owned.shape[1], dtype=np.int64),
    )
