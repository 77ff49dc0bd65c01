"""Highest First list scheduling of rigid jobs, on one cluster or on several side by side.

Euro-Par 2007, section 3. The list is in Highest First order: jobs that need more processors come
first. What the paper leaves open goes to the longer job, then to the one listed first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from shapleyprio.experiment.mosp.model import Job
from shapleyprio.experiment.mosp.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a job runs, and from when on."""

    cluster: int
    start: int


Rank = tuple[int, int, int]
"""A job's place in the list: the smaller, the sooner."""


def rank(jobs: Sequence[Job], index: int) -> Rank:
    """A job's place in Highest First order."""
    job = jobs[index]
    return -job.processors, -job.processing_time, index


def list_schedule(
    jobs: Sequence[Job], queue: Iterable[int], clusters: Sequence[Timeline]
) -> dict[int, Placed]:
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
    moments = [(t, number) for number, one in enumerate(clusters) for t in one.moments]
    heapify(moments)
    placed: dict[int, Placed] = {}
    while waiting:
        t, number = heappop(moments)
        open_clusters = {number}
        while moments and moments[0][0] == t:
            open_clusters.add(heappop(moments)[1])
        for index, number in _starts(waiting, t, {one: clusters[one] for one in open_clusters}):
            placed[index] = Placed(number, t)
            heappush(moments, (t + jobs[index].processing_time, number))
    return placed


def _starts(
    waiting: _Waiting, t: int, clusters: Mapping[int, Timeline]
) -> Iterable[tuple[int, int]]:
    """Takes jobs from the list as long as one fits at t, and tells each and its cluster."""
    choice = {number: waiting.first_fitting(one, t) for number, one in clusters.items()}
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
    jobs: Sequence[Job], queue: Iterable[int], clusters: Sequence[Timeline]
) -> dict[int, Placed]:
    """Gives each job in turn the earliest place on any cluster, as conservative backfilling does.

    A job may start before one that comes earlier in the list, if it does not delay it.

    Args:
        jobs: everybody's.
        queue: the indices of those that wait.
        clusters: what they already run; the jobs are added.

    Returns:
        job -> its place, in the order of the list.
    """
    placed: dict[int, Placed] = {}
    for index in sorted(queue, key=lambda one: rank(jobs, one)):
        job = jobs[index]
        best: Placed | None = None
        for number, one in enumerate(clusters):
            before = best.start if best else None
            start = one.earliest(job.processors, job.processing_time, before)
            if start is not None:
                best = Placed(number, start)
        assert best is not None  # every cluster is large enough, and empty in the end
        clusters[best.cluster].take(best.start, job.processing_time, job.processors)
        placed[index] = best
    return placed


class _Waiting:
    """The list of waiting jobs, by width, so that the first one that fits is found quickly."""

    def __init__(self, jobs: Sequence[Job], queue: Iterable[int]) -> None:
        self._jobs = jobs
        self._by_width: dict[int, list[tuple[int, int]]] = {}
        for index in sorted(queue, key=lambda one: rank(jobs, one), reverse=True):
            job = jobs[index]
            # ascending: the last one is the first of the list
            self._by_width.setdefault(job.processors, []).append((job.processing_time, -index))
        self._widths = sorted(self._by_width)

    def __bool__(self) -> bool:
        return bool(self._widths)

    def first_fitting(self, cluster: Timeline, t: int) -> Rank | None:
        """The first job of the list that the cluster can run from t on without a break."""
        fitting = bisect_right(self._widths, cluster.free(t))
        for width in reversed(self._widths[:fitting]):
            alike = self._by_width[width]
            until = cluster.free_until(t, width)
            at = len(alike) if until is None else bisect_right(alike, (until - t, 0))
            if at:
                processing_time, negative = alike[at - 1]
                return -width, -processing_time, -negative
        return None

    def take(self, place: Rank) -> Job:
        """Removes a job."""
        width, processing_time, index = -place[0], -place[1], place[2]
        alike = self._by_width[width]
        del alike[bisect_right(alike, (processing_time, -index)) - 1]
        if not alike:
            self._widths.remove(width)
        return self._jobs[index]
