"""How long jobs waited that have started, and how long those wait that have not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shapleyprio.daemon.ranking.demand import CountingJobs
from shapleyprio.daemon.ranking.observation import Observation
from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import NOBODY, Tenures
from shapleyprio.store import PendingJobs, Wait


def waits_of(runs: Iterable[Run], tenures: Tenures) -> list[Wait]:
    """Returns how long runs had waited, those left out that count for no organization."""
    found = []
    for run in runs:
        start = run.key.start
        organization = tenures.holder("account", run.account, start)
        if organization != NOBODY and not tenures.is_left_out("partition", run.partition, start):
            found.append(Wait(organization, run.partition, start - run.release))
    return found


def pending_jobs_of(
    observation: Observation, places: Mapping[tuple[str, str], CountingJobs]
) -> list[PendingJobs]:
    """Returns the jobs that could start and wait, by organization and partition.

    Args:
        observation: the cluster as it is.
        places: account and partitions -> the jobs there; held ones, for example, do not count.
    """
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for (account, partitions), (more, _, first) in places.items():
        organization = observation.organization_of_jobs_in(account, partitions)
        for partition in partitions.split(","):
            if organization != NOBODY and partition not in observation.left_out:
                jobs, since = found.get((organization, partition), (0, first))
                found[organization, partition] = (jobs + more, min(since, first))
    return [
        PendingJobs(organization=organization, partition=partition, jobs=jobs, since=since)
        for (organization, partition), (jobs, since) in sorted(found.items())
    ]
