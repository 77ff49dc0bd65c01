"""The pending jobs that go first because of their organization's guarantee."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from shapleyprio.common.wording import duration
from shapleyprio.daemon.pushing.going_first import Guaranteed
from shapleyprio.daemon.ranking.observation import Observation
from shapleyprio.daemon.ranking.observing import Observed
from shapleyprio.fairness.guarantee import EligibleJob, guaranteed
from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.runs import Run
from shapleyprio.slurm.port import PendingJob
from shapleyprio.store import GUARANTEE, ExceptionRow


def guaranteed_jobs(
    observed: Observed, ledger: Ledger, started: Collection[Run], guarantees: Mapping[str, int]
) -> Guaranteed:
    """Returns the jobs that go first, each with as long again to start.

    Args:
        observed: the cluster, as this cycle has observed.
        ledger: that stands at its second.
        started: runs that were not known before.
        guarantees: organization -> seconds.
    """
    observation, demand = observed.observation, observed.demand
    running = {run.key.job_id for run in started}  # the queue may be read before they left it
    known = running.union(run.array_job_id for run in started)
    if not guarantees:
        return Guaranteed(jobs=(), parts=(), started=known)
    jobs = {job.job_id: job for job in demand.jobs if job.job_id not in running}
    usable = observation.owned_processors(usable=True)
    of = {
        name: _Use(used, usable.get(name, 0))
        for name, (_, used) in ledger.executed(observation.t, guarantees).items()
    }
    first = guaranteed(
        observation.t,
        guarantees,
        {name: use.brings - use.used for name, use in of.items()},
        _eligible(observed, jobs.values(), guarantees),
    )
    return Guaranteed(
        jobs=[
            _exception(jobs[one.job], one, of[one.organization], observation.t, guarantees)
            for one in first
            if one.tasks == jobs[one.job].tasks
        ],
        parts=[(jobs[one.job], one.tasks) for one in first if one.tasks < jobs[one.job].tasks],
        started=known,
    )


class _Use(NamedTuple):
    """Processors of an organization."""

    used: int
    brings: int


def _eligible(
    observed: Observed, jobs: Iterable[PendingJob], guarantees: Mapping[str, int]
) -> Iterator[EligibleJob]:
    """Yields the jobs that have waited for long enough, and have room on their own nodes there."""
    organization_of = cache(observed.observation.organization_of_jobs_in)
    own = _own_processors(observed.observation)
    tasks, t = observed.demand.tasks, observed.observation.t
    for job in jobs:
        name, since = organization_of(job.account, job.partition), job.eligible or 0
        if t - since < guarantees.get(name, t + 1):
            continue
        if job.processors <= max(own[name, one] for one in job.partition.split(",")):
            count = tasks.get(job.job_id, job.tasks)
            yield EligibleJob(job.job_id, name, since, job.processors, count)


def _own_processors(observation: Observation) -> Counter[tuple[str, str]]:
    """Returns organization and partition -> processors of its nodes there that are not closed."""
    found: Counter[tuple[str, str]] = Counter()
    in_partitions = observation.in_partitions(lambda node: node.usable(observation.tres))
    for organization, counts in in_partitions.items():
        for names, processors in counts.items():
            found.update({(organization, name): processors for name in names})
    return found


def _exception(
    job: PendingJob, first: EligibleJob, use: _Use, t: int, guarantees: Mapping[str, int]
) -> ExceptionRow:
    name = first.organization
    return ExceptionRow(
        job_id=job.job_id,
        since=t,
        label=job.label,
        organization=name,
        user=GUARANTEE,
        reason=f"{name} uses {use.used} of its {use.brings} processors, and the job has waited "
        f"{duration(t - first.since)}",
        before_all=True,
        until=t + guarantees[name],
    )
