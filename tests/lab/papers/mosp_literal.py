"""Literal definitions of the Multi-Organization Scheduling Problem, to hold the code against."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

from shapleyprio.lab.papers.mosp.model import BatchSchedule, Instance


def taken(schedule: BatchSchedule, cluster: int, second: int) -> int:
    """How many processors jobs occupy on a cluster in [second, second + 1)."""
    return sum(
        job.processors
        for index, job in enumerate(schedule.instance.jobs)
        if schedule.cluster[index] == cluster
        and schedule.start[index] <= second < schedule.completion(index)
    )


def is_feasible(schedule: BatchSchedule) -> bool:
    """Whether every job has a cluster of its own, and no cluster is ever overfull."""
    instance = schedule.instance
    return all(
        0 <= cluster < instance.organizations and start >= 0
        for cluster, start in zip(schedule.cluster, schedule.start, strict=True)
    ) and all(
        taken(schedule, cluster, second) <= instance.processors
        for cluster in range(instance.organizations)
        for second in range(schedule.makespan)
    )


def active_schedules(instance: Instance) -> Iterator[BatchSchedule]:
    """Every order of jobs on every assignment to clusters, each job as soon as it fits.

    Makespans, everybody's and each organization's, only grow with completion times, so their
    smallest values are among these.
    """
    count = len(instance.jobs)
    for clusters in product(range(instance.organizations), repeat=count):
        for order in permutations(range(count)):
            yield _in_order(instance, clusters, order)


def optimum(instance: Instance, limits: list[int] | None = None) -> int:
    """The smallest makespan, with no organization beyond its limit if there are any."""
    return min(
        schedule.makespan
        for schedule in active_schedules(instance)
        if limits is None
        or all(ours <= most for ours, most in zip(schedule.makespans, limits, strict=True))
    )


def _in_order(
    instance: Instance, clusters: tuple[int, ...], order: tuple[int, ...]
) -> BatchSchedule:
    start = [0] * len(order)
    usage: dict[tuple[int, int], int] = {}
    for index in order:
        job, cluster = instance.jobs[index], clusters[index]
        t = 0
        while any(
            usage.get((cluster, second), 0) + job.processors > instance.processors
            for second in range(t, t + job.processing_time)
        ):
            t += 1
        start[index] = t
        for second in range(t, t + job.processing_time):
            usage[cluster, second] = usage.get((cluster, second), 0) + job.processors
    return BatchSchedule(instance, clusters, start)
