"""Highest First list scheduling of rigid jobs, on one cluster or on several side by side.

Euro-Par 2007, section 3. The list is in Highest First order: jobs that need more processors come
first. What the paper leaves open goes to the longer job, then to the one listed first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from shapleyprio.lab.papers.mosp.model import BatchJob


class Timeline:
    """A step function: processors taken, which changes where jobs start or end."""

    def __init__(self, processors: int) -> None:
        """Makes an empty cluster of that many processors."""
        self._processors = processors
        self._moments = [0]
        self._taken = [0]  # from the moment of the same index until the next
        self._last_start = 0
        self._crowded_for = 1  # so many processors are not free
        self._crowded_until = 0  # before this moment

    @property
    def moments(self) -> tuple[int, ...]:
        """The moments at which it changes, and 0; in order."""
        return tuple(self._moments)

    def free(self, t: int) -> int:
        """Returns how many processors are free from t on, if only for a second."""
        return self._processors - self._taken[bisect_right(self._moments, t) - 1]

    def free_until(self, t: int, processors: int) -> int | None:
        """Returns until when that many, which are free at t, stay free; None: for ever."""
        if t >= self._last_start:  # nothing starts any more, so it only gets emptier
            return None
        most = self._processors - processors
        for at in range(bisect_right(self._moments, t), len(self._moments)):
            if self._taken[at] > most:
                return self._moments[at]
        return None

    def earliest(
        self, processors: int, processing_time: int, before: int | None = None
    ) -> int | None:
        """Finds the first moment from which that many are free for so long, None: not before it."""
        most = self._processors - processors
        at = self._first_room(processors)
        start = self._moments[at]
        while at < len(self._moments) and self._moments[at] - start < processing_time:
            if self._taken[at] > most:
                start = self._moments[at + 1]  # the last step is empty, so there is a next one
            if before is not None and start >= before:
                return None
            at += 1
        return start

    def _first_room(self, processors: int) -> int:
        """Finds the first step with that many free.

        It is only ever found later, as nothing is given back, so for as many processors or more
        than last time the search goes on from there.
        """
        if processors < self._crowded_for:
            self._crowded_until = 0
        at = bisect_left(self._moments, self._crowded_until)
        while self._taken[at] > self._processors - processors:
            at += 1
        self._crowded_for, self._crowded_until = processors, self._moments[at]
        return at

    def take(self, start: int, processing_time: int, processors: int) -> None:
        """Reserves processors, which must be free, for [start, start + processing_time)."""
        begin, end = self._step(start), self._step(start + processing_time)
        for at in range(begin, end):
            self._taken[at] += processors
        self._last_start = max(self._last_start, start)

    def _step(self, moment: int) -> int:
        """Returns the index of the step that begins at this moment, which is made if need be."""
        at = bisect_left(self._moments, moment)
        if at == len(self._moments) or self._moments[at] != moment:
            self._moments.insert(at, moment)
            self._taken.insert(at, self._taken[at - 1])
        return at


@dataclass(frozen=True, slots=True)
class ListedJob:
    """Where a job runs, and from when on."""

    cluster: int
    start: int


ListRank = tuple[int, int, int]
"""A job's position in the list: the smaller, the sooner."""


def rank(jobs: Sequence[BatchJob], index: int) -> ListRank:
    """Returns a job's place in Highest First order."""
    job = jobs[index]
    return -job.processors, -job.processing_time, index


def list_schedule(
    jobs: Sequence[BatchJob], queue: Iterable[int], clusters: Sequence[Timeline]
) -> dict[int, ListedJob]:
    """Schedules waiting jobs greedily around what the clusters already have.

    Time goes forward. Whenever a job ends, the first job of the list starts that finds its
    processors free, from then until it completes, on the first such cluster; and so on until
    none does. So nothing that a cluster already has is delayed.

    Args:
        jobs: everybody's.
        queue: the indices of those that wait.
        clusters: what they already run; the jobs are added.

    Returns:
        job -> its place, in the order of starts.
    """
    waiting = _Waiting(jobs, queue)
    moments = [(t, number) for number, cluster in enumerate(clusters) for t in cluster.moments]
    heapify(moments)
    placed: dict[int, ListedJob] = {}
    while waiting:
        t, number = heappop(moments)
        open_clusters = {number}
        while moments and moments[0][0] == t:
            open_clusters.add(heappop(moments)[1])
        open_now = {number: clusters[number] for number in open_clusters}
        for index, number in _starts(waiting, t, open_now):
            placed[index] = ListedJob(number, t)
            heappush(moments, (t + jobs[index].processing_time, number))
    return placed


def _starts(
    waiting: _Waiting, t: int, clusters: Mapping[int, Timeline]
) -> Iterable[tuple[int, int]]:
    """Takes jobs from the list as long as one fits at t; yields each and its cluster."""
    choice = {number: waiting.first_fitting(cluster, t) for number, cluster in clusters.items()}
    while True:
        fitting = [(place, number) for number, place in choice.items() if place is not None]
        if not fitting:
            return
        taken, chosen = min(fitting)
        job = waiting.take(taken)
        clusters[chosen].take(t, job.processing_time, job.processors)
        yield taken[2], chosen
        for number, place in choice.items():
            if place == taken or number == chosen:
                choice[number] = waiting.first_fitting(clusters[number], t)


def place_one_by_one(
    jobs: Sequence[BatchJob], queue: Iterable[int], clusters: Sequence[Timeline]
) -> dict[int, ListedJob]:
    """Gives each job in turn the earliest place on any cluster, as conservative backfilling does.

    A job may start before one that comes earlier in the list, if it does not delay it.

    Args:
        jobs: everybody's.
        queue: the indices of those that wait.
        clusters: what they already run; the jobs are added.

    Returns:
        job -> its place, in the order of the list.
    """
    placed: dict[int, ListedJob] = {}
    for index in sorted(queue, key=lambda index: rank(jobs, index)):
        job = jobs[index]
        best: ListedJob | None = None
        for number, cluster in enumerate(clusters):
            before = best.start if best else None
            start = cluster.earliest(job.processors, job.processing_time, before)
            if start is not None:
                best = ListedJob(number, start)
        assert best is not None  # every cluster is large enough, and empty in the end
        clusters[best.cluster].take(best.start, job.processing_time, job.processors)
        placed[index] = best
    return placed


class _Waiting:
    """The list of waiting jobs, by width, so that the first one that fits is found quickly."""

    def __init__(self, jobs: Sequence[BatchJob], queue: Iterable[int]) -> None:
        self._jobs = jobs
        self._by_width: dict[int, list[tuple[int, int]]] = {}
        for index in sorted(queue, key=lambda index: rank(jobs, index), reverse=True):
            job = jobs[index]
            # ascending: the last one is the first of the list
            self._by_width.setdefault(job.processors, []).append((job.processing_time, -index))
        self._widths = sorted(self._by_width)

    def __bool__(self) -> bool:
        return bool(self._widths)

    def first_fitting(self, cluster: Timeline, t: int) -> ListRank | None:
        """Returns the first job of the list that the cluster can run from t on without a break."""
        fitting = bisect_right(self._widths, cluster.free(t))
        for width in reversed(self._widths[:fitting]):
            alike = self._by_width[width]
            until = cluster.free_until(t, width)
            at = len(alike) if until is None else bisect_right(alike, (until - t, 0))
            if at:
                processing_time, negative = alike[at - 1]
                return -width, -processing_time, -negative
        return None

    def take(self, place: ListRank) -> BatchJob:
        """Removes a job."""
        width, processing_time, index = -place[0], -place[1], place[2]
        alike = self._by_width[width]
        del alike[bisect_right(alike, (processing_time, -index)) - 1]
        if not alike:
            self._widths.remove(width)
        return self._jobs[index]
