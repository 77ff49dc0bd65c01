"""Guarantees: jobs that go first, whatever the rule says, since their organization lends its own.

As long as an organization uses less in a partition than it brings there, its jobs that fit within
the difference go before all others once they have waited for as long as its guarantee says; or
earlier, by as long as it may take until enough processors are free.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class EligibleJob:
    """A job, or what waits of an array, that lacks nothing but its turn.

    Attributes:
        job: its number.
        organization: for which it counts.
        since: second from which it waits.
        processors: that it, or each task, asks for.
        tasks: how many there are.
        partitions: in which it may start; the empty name is that of all nodes.
    """

    job: int
    organization: str
    since: int
    processors: int
    tasks: int = 1
    partitions: Collection[str] = ("",)


@dataclass(frozen=True, slots=True)
class Lent:
    """What organizations bring to partitions and do not use there.

    Attributes:
        unused: organization and partition -> processors of its nodes there, less those of all nodes
            there that work for it.
        sharing: partition -> those that have nodes in common with it, itself among them.
    """

    unused: Mapping[tuple[str, str], int]
    sharing: Mapping[str, Collection[str]]

    def fitting(self, jobs: Iterable[EligibleJob]) -> Iterator[EligibleJob]:
        """Yields those of the jobs, in their order, that fit into what is lent beside the others.

        A job fits into one of its partitions, and counts in all that share nodes with any of them:
        so the later ones still fit wherever it starts, unless one that did not fit and was passed
        over does so then. Of an array there are as many tasks as fit.
        """
        left = self.left()
        for job in jobs:
            if not left:
                return
            if tasks := self.take(job, left):
                yield replace(job, tasks=tasks)

    def left(self) -> dict[tuple[str, str], int]:
        """Returns what of it jobs can take, to begin with."""
        return {place: room for place, room in self.unused.items() if room > 0}

    def take(self, job: EligibleJob, left: dict[tuple[str, str], int]) -> int:
        """Takes what a job needs from what is left; returns how many of its tasks fit."""
        name, processors = job.organization, job.processors
        rooms = [left.get((name, one), 0) for one in job.partitions]
        if not 0 < processors <= max(rooms):
            return 0
        tasks = min(job.tasks, max(rooms) // processors)
        for one in self.touched(job):
            room = left.pop((name, one), 0) - tasks * processors
            if room > 0:
                left[name, one] = room
        return tasks

    def touched(self, job: EligibleJob) -> set[str]:
        """Returns the partitions that have a node on which a job may start."""
        return {other for one in job.partitions for other in self.sharing.get(one, ())}


class Freeing:
    """When processors of a partition will be free, if its jobs run up to their time limits.

    Args:
        free: processors that are free now.
        ends: second up to which a job may run, None without a limit -> processors that it holds.
    """

    def __init__(self, free: int, ends: Iterable[tuple[int | None, int]]) -> None:
        known = sorted((end, count) for end, count in ends if end is not None)
        self._ends = [end for end, _ in known]
        self._free = list(accumulate((count for _, count in known), initial=free))

    def wait_for(self, processors: int, t: int, most: int) -> int:
        """Returns for how many seconds a job may have to wait for so many processors, at most.

        >>> [Freeing(1, [(50, 2), (20, 1), (None, 9)]).wait_for(n, 10, 90) for n in range(1, 6)]
        [0, 10, 40, 40, 90]
        """
        place = bisect_left(self._free, processors)
        if place == 0:
            return 0
        if place > len(self._ends):
            return most
        return min(max(self._ends[place - 1] - t, 0), most)


def has_waited(t: int, since: int, guarantee: int | None) -> bool:
    """Returns whether a job that waits since a second is due at t; without a guarantee none is."""
    return guarantee is not None and t - since >= guarantee


def guaranteed(
    t: int,
    guarantees: Mapping[str, int],
    lent: Lent,
    jobs: Iterable[EligibleJob],
    freeing: Mapping[str, Freeing] = MappingProxyType({}),
) -> list[EligibleJob]:
    """Returns the jobs that go before all others, the one that has waited longest first.

    Of those that wait equally long, such as tasks that were split from an array and its rest, the
    one with the fewest tasks comes first, then the lower number.

    Args:
        t: second of the decision.
        guarantees: organization -> seconds after which its jobs go first; the others have none.
        lent: into which they have to fit.
        jobs: that wait.
        freeing: partition -> when its processors will be free, if jobs go first earlier, by as
            long as those for it, and for its organization's that have waited longer, may be held.

    >>> jobs = [EligibleJob(1, "a", 0, 3), EligibleJob(2, "a", 5, 2), EligibleJob(3, "a", 6, 2)]
    >>> lent = Lent({("a", ""): 5}, {"": [""]})
    >>> [job.job for job in guaranteed(10, {"a": 4}, lent, jobs)]
    [1, 2]
    """
    may_be_due = [
        job
        for job in jobs
        if job.organization in guarantees
        and (freeing or has_waited(t, job.since, guarantees[job.organization]))
    ]
    wanted: Counter[tuple[str, str]] = Counter()
    due = []
    for job in lent.fitting(sorted(may_be_due, key=lambda job: (job.since, job.tasks, job.job))):
        name, guarantee = job.organization, guarantees[job.organization]
        for one in lent.touched(job):
            wanted[name, one] += job.tasks * job.processors
        waits = (
            freeing[one].wait_for(wanted[name, one], t, guarantee)
            for one in job.partitions
            if one in freeing
        )
        if has_waited(t + min(waits, default=0), job.since, guarantee):
            due.append(job)
    return due
