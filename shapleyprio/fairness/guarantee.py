"""Guarantees: jobs that go first, whatever the rule says, since their organization lends its own.

As long as an organization uses less than it brings, its jobs that fit within the difference go
before all others once they have waited for as long as its guarantee says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class EligibleJob:
    """A job, or what waits of an array, that lacks nothing but its turn.

    Attributes:
        job: its number.
        organization: for which it counts.
        since: second from which it waits.
        processors: that it, or each task, asks for.
        tasks: how many there are.
    """

    job: int
    organization: str
    since: int
    processors: int
    tasks: int = 1


def guaranteed(
    t: int, guarantees: Mapping[str, int], unused: Mapping[str, int], jobs: Iterable[EligibleJob]
) -> list[EligibleJob]:
    """Returns the jobs that go before all others, the one that has waited longest first.

    Of those that wait equally long, such as tasks that were split from an array and its rest, the
    one with the fewest tasks comes first, then the lower number.

    Each takes what it needs of what its organization does not use; one that does not fit into the
    rest is passed over. Of an array as many tasks go first as fit.

    Args:
        t: second of the decision.
        guarantees: organization -> seconds after which its jobs go first; the others have none.
        unused: organization -> processors that it brings and does not use.
        jobs: that wait.

    >>> jobs = [EligibleJob(1, "a", 0, 3), EligibleJob(2, "a", 5, 2), EligibleJob(3, "a", 6, 2)]
    >>> [job.job for job in guaranteed(10, {"a": 4}, {"a": 4}, jobs)]
    [1]
    >>> [job.job for job in guaranteed(10, {"a": 4}, {"a": 5}, jobs)]
    [1, 2]
    """
    left = {name: unused.get(name, 0) for name in guarantees}
    found = []
    for job in sorted(jobs, key=lambda job: (job.since, job.tasks, job.job)):
        rest = left.get(job.organization, 0)
        if job.processors and t - job.since >= guarantees.get(job.organization, t + 1):
            fitting = min(job.tasks, rest // job.processors)
            if fitting > 0:
                left[job.organization] = rest - fitting * job.processors
                found.append(replace(job, tasks=fitting))
    return found
