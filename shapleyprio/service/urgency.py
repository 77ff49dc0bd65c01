"""Which writes are the most urgent, where there are more than one cycle may make.

What starts next has the highest priority in its partition. So those writes come first without
which the first jobs of a partition would be the wrong ones, or in the wrong order: those that raise
a job to where it will be among the first, and those that lower one which stands before a job that
will be. They come by the place to which they matter, a thousand places at a time, and within
these those that raise before those that lower: a few raised jobs can start next whatever follows,
while of lowered ones all must be, before one is of use. Each cycle weighs what is left anew, with
what stands in Slurm by then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import PendingJob
from shapleyprio.store import NewPush

PLACES_AT_ONCE = 1_000
"""More jobs than a partition starts in a cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many writes one cycle may make.

    Attributes:
        writes: in all.
        raises_of_user: of those that raise jobs of one user. What lowers is not limited, or a
            user's many jobs would stay where they do not belong.
        places_at_once: places of a partition's queue that count alike.
    """

    writes: int
    raises_of_user: int
    places_at_once: int = PLACES_AT_ONCE


def most_urgent(
    pushes: Sequence[NewPush], pending: Collection[PendingJob], limits: Limits
) -> list[NewPush]:
    """Returns the writes to make in this cycle, the most urgent first.

    First comes what is not written to jobs, for it counts for many at once; last what cannot
    change what starts next: writes to jobs that are held, wait for others, or run.

    Args:
        pushes: all that there is to write.
        pending: the jobs that wait, with the priorities they have now.
        limits: how many.
    """
    if not pushes:
        return []
    rises = {id(push): _rise(push) for push in pushes}
    changes: Counter[str] = Counter()
    for push in pushes:
        changes[push.key] += rises[id(push)]
    numbers = {int(key) for key in changes if key.isdecimal()}
    jobs = {str(job.job_id): job for job in pending if job.job_id in numbers}
    queues = _Queues(pending, jobs, changes)

    def urgency(push: NewPush) -> tuple[int, int, bool, int, int]:
        rise, job = rises[id(push)], jobs.get(push.key)
        if not CHANNELS[push.channel].per_job:
            return 0, 0, False, 0, 0
        if job is None or job.release is None:
            return 2, 0, rise < 0, 0, 0
        highest = job.priority + max(rise, 0)
        place = queues.place(job, highest)
        return 1, place // limits.places_at_once, rise < 0, place, -highest

    chosen: list[NewPush] = []
    raised: Counter[str] = Counter()
    for push in sorted(pushes, key=urgency):
        if len(chosen) == limits.writes:
            break
        job = jobs.get(push.key)
        if job is not None and rises[id(push)] > 0:
            if raised[job.user] == limits.raises_of_user:
                continue
            raised[job.user] += 1
        chosen.append(push)
    return chosen


class _Queues:
    """The queue of each partition as it will be when all is written."""

    def __init__(
        self,
        pending: Collection[PendingJob],
        written: Mapping[str, PendingJob],
        changes: Mapping[str, int],
    ) -> None:
        """Sorts the jobs.

        Args:
            pending: all that wait.
            written: those that are written to, by key.
            changes: key -> by how much that changes its priority.
        """
        changed = set(map(id, written.values()))
        together: dict[str, list[int]] = defaultdict(list)
        for job in pending:
            if job.release is not None and id(job) not in changed:
                together[job.partition].append(-job.priority)
        for key, job in written.items():
            if job.release is not None:
                together[job.partition].append(-(job.priority + changes[key]))
        self._falling: dict[str, list[int]] = defaultdict(list)
        for partitions, priorities in together.items():
            for partition in partitions.split(","):
                self._falling[partition] += priorities
        for priorities in self._falling.values():
            priorities.sort()

    def place(self, job: PendingJob, priority: int) -> int:
        """Returns before how many jobs a priority will not get the job, where it does best."""
        names = job.partition.split(",")
        return min(bisect_left(self._falling[name], -priority) for name in names)


def _rise(push: NewPush) -> int:
    """Returns by how much a write raises the priority of its job; 0 if it is written to no job."""
    channel = CHANNELS[push.channel]
    if not channel.per_job:
        return 0
    return channel.value(0, 1) * (push.new - push.old)
