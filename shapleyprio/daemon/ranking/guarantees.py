"""The pending jobs that go first because of their organization's guarantee."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shapleyprio.common.wording import duration
from shapleyprio.daemon.pushing.going_first import Guaranteed
from shapleyprio.daemon.ranking.observing import Observed
from shapleyprio.fairness.guarantee import EligibleJob, guaranteed
from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.runs import Run
from shapleyprio.store import GUARANTEE, ExceptionRow


def guaranteed_jobs(
    observed: Observed, ledger: Ledger, started: Iterable[Run], guarantees: Mapping[str, int]
) -> Guaranteed:
    """Returns the jobs that go first, each with as long again to start.

    Args:
        observed: the cluster, as this cycle has observed.
        ledger: that stands at its second.
        started: runs that were not known before.
        guarantees: organization -> seconds.
    """
    observation, demand = observed.observation, observed.demand
    t = observation.t
    usable = observation.owned_processors(usable=True)
    brings = {name: usable.get(name, 0) for name in guarantees}
    used = {name: running for name, (_, running) in ledger.executed(t, guarantees).items()}
    labels = {}
    eligible = []
    for job in demand.jobs if guarantees else ():
        organization = observation.organization_of_jobs_in(job.account, job.partition)
        since = job.eligible or 0
        if t - since >= guarantees.get(organization, t + 1):
            labels[job.job_id] = job.label
            tasks = demand.tasks.get(job.job_id, job.tasks)
            eligible.append(EligibleJob(job.job_id, organization, since, job.processors, tasks))
    unused = {name: brings[name] - used[name] for name in guarantees}
    rows = [
        ExceptionRow(
            job_id=job.job,
            since=t,
            label=labels[job.job],
            organization=job.organization,
            user=GUARANTEE,
            reason=f"{job.organization} uses {used[job.organization]} of its "
            f"{brings[job.organization]} processors, and the job has waited "
            f"{duration(t - job.since)}",
            before_all=True,
            until=t + guarantees[job.organization],
        )
        for job in guaranteed(t, guarantees, unused, eligible)
    ]
    numbers = {number for run in started for number in (run.key.job_id, run.array_job_id)}
    return Guaranteed(jobs=rows, started=numbers)
