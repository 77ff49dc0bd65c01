"""Which writes are the most urgent, if there are more than one cycle may make.

The job with the highest priority in its partition starts next. So the first writes are those that
put the right jobs at the head of each partition's queue: they raise a job to a place among the
first, or lower one that is before such a job. They are ordered by that place, a thousand places at
a time, and within these raises come before lowerings: a raised job can start next at once, while
lowerings are of use only together. Each cycle orders the remaining writes again, by the priorities
then in Slurm. If one cycle may make all writes, they are ordered by the priorities that they give.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
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

    def allow_any(self, writes: int) -> bool:
        """Returns whether so many writes are all made, whatever they are, and at once."""
        return writes <= min(self.writes, self.raises_of_user, self.places_at_once)


def most_urgent(
    pushes: Sequence[NewPush], pending: Collection[PendingJob], limits: Limits
) -> list[NewPush]:
    """Returns the writes to make in this cycle, the most urgent first.

    First comes what is not written to jobs, for it counts for many at once; last what cannot
    change what starts next: writes to jobs that lack more than their turn, or run.

    Args:
        pushes: all that there is to write.
        pending: the jobs that wait, with the priorities they have now.
        limits: how many.
    """
    if not pushes:
        return []
    changed = changes(pushes)
    jobs = {job.job_id: job for job in pending if job.job_id in changed}
    queues = None if limits.allow_any(len(pushes)) else _Queues(pending, jobs, changed)
    del changed  # it takes as much memory as what follows

    def urgency(push: NewPush) -> int:
        if not CHANNELS[push.channel].per_job:
            return _in_one(0, 0, False, 0, 0)
        rise, job = _rise(push), jobs.get(int(push.key))
        if job is None or not job.waits_for_its_turn:
            return _in_one(2, 0, rise < 0, 0, 0)
        highest = job.priority + max(rise, 0)
        place = 0 if queues is None else queues.place(job, highest)
        return _in_one(1, place // limits.places_at_once, rise < 0, place, -highest)

    chosen: list[NewPush] = []
    raised: Counter[str] = Counter()
    for push in sorted(pushes, key=urgency):
        if len(chosen) == limits.writes:
            break
        rise = _rise(push)
        job = jobs.get(int(push.key)) if rise > 0 else None
        if job is not None:
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
        written: Mapping[int, PendingJob],
        changed: Mapping[int, int],
    ) -> None:
        """Sorts the jobs.

        Args:
            pending: all that wait.
            written: those that are written to, by job id.
            changed: job id -> by how much that changes its priority.
        """
        together: dict[str, list[int]] = defaultdict(list)
        for job in pending:
            if job.waits_for_its_turn and job.job_id not in written:
                together[job.partition].append(-job.priority)
        for job_id, job in written.items():
            if job.waits_for_its_turn:
                together[job.partition].append(-(job.priority + changed[job_id]))
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


def changes(pushes: Iterable[NewPush]) -> Counter[int]:
    """Returns job id -> by how much all writes to the job change its priority."""
    changed: Counter[int] = Counter()
    for push in pushes:
        if CHANNELS[push.channel].per_job:
            changed[int(push.key)] += _rise(push)
    return changed


def _in_one(*parts: int) -> int:
    """Returns a number that sorts as these do, each below 2**40, and takes far less memory."""
    number = 0
    for part in parts:
        number = (number << 40) + part
    return number


def _rise(push: NewPush) -> int:
    """Returns by how much a write raises the priority of its job; 0 if it is written to no job."""
    field = CHANNELS[push.channel].job_field
    return 0 if field is None else field.sign * (push.new - push.old)
