"""How long jobs waited that have started, and how long those wait that have not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shapleyprio.daemon.ranking.demand import Counted
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


def pending_jobs_of(observation: Observation, counting: Mapping[int, Counted]) -> list[PendingJobs]:
    """Returns the jobs that could start and wait, by organization and partition.

    Args:
        observation: the cluster as it is.
        counting: job id -> since when it could start; held ones, for example, are not there.
    """
    places: dict[tuple[str, str], tuple[int, int]] = {}
    for job in observation.pending:
        counted = counting.get(job.job_id)
        if counted is not None and counted.tasks:
            jobs, since = places.get((job.account, job.partition), (0, counted.since))
            places[job.account, job.partition] = (jobs + 1, min(since, counted.since))
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for (account, partitions), (more, first) in places.items():
        organization = observation.organization_of_jobs_in(account, partitions)
        for partition in partitions.split(","):
            if organization != NOBODY and partition not in observation.left_out:
                jobs, since = found.get((organization, partition), (0, first))
                found[organization, partition] = (jobs + more, min(since, first))
    return [
        PendingJobs(organization=organization, partition=partition, jobs=jobs, since=since)
        for (organization, partition), (jobs, since) in sorted(found.items())
    ]
