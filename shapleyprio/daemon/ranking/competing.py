"""Who competes for what at the end of a cycle, for forecasts of starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from shapleyprio.common.wording import DAY
from shapleyprio.daemon.forecasting.messages import Competitor, ForecastRequest, KnownNode
from shapleyprio.daemon.ranking.demand import Counted
from shapleyprio.daemon.ranking.observing import Observed
from shapleyprio.daemon.ranking.ranking import Ranked
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.port import PendingJob, SlurmError, in_slurms_order
from shapleyprio.slurm.reasons import lack_of

SOON_SECONDS = DAY
"""Jobs that are to begin later have no forecast: futures would take as long."""

MOST_DEPENDENT = 1000
"""So many jobs that depend on others have a forecast at most."""

Dependencies = Callable[[Sequence[int]], Mapping[int, tuple[int, ...]]]


def competition(
    observed: Observed, ranked: Ranked, overlap: int, dependencies: Dependencies
) -> ForecastRequest:
    """Returns what forecasts go by.

    Args:
        observed: the cluster as it is; jobs that do not count have no forecast, but for those that
            wait for nothing but the time at which they are to begin, or for others to end.
        ranked: the organizations.
        overlap: seconds of accounting that every cycle reads again.
        dependencies: reads on which others pending jobs depend; asked only if some do.
    """
    observation = observed.observation
    names = [row.organization for row in ranked.standings]
    owners = {name: number for number, name in enumerate((*names, NOBODY))}
    place = {
        job.job_id: number
        for number, job in enumerate(sorted(observation.pending, key=in_slurms_order))
    }
    lacking = [job for job in observation.pending if not job.waits_for_its_turn]
    after = _dependencies(lacking, dependencies)
    waiting = observation.counting_jobs(
        observed.demand.counting()
        | _beginning(observed, lacking)
        | _dependent(observed, lacking, after)
    )
    processors = {node.name: node.usable(observation.tres) for node in observation.nodes}
    busy = {node.name: node.allocated.get(observation.tres, 0) for node in observation.nodes}
    partitions = {
        name: found
        for name, found in observation.partitions_of.items()
        if found and processors.get(name)
    }
    bays = sorted(set(partitions.values()), key=lambda found: (len(found), found))
    number_of = {found: number for number, found in enumerate(bays)}
    return ForecastRequest(
        t=observation.t,
        rule=ranked.rule,
        competitors=(
            *(Competitor(name, ranked.trajectories[name]) for name in names),
            Competitor(NOBODY, None),
        ),
        bays=tuple(bays),
        nodes={
            name: KnownNode(
                owner=owners.get(
                    observation.tenures.holder("node", name, observation.t), len(names)
                ),
                bay=number_of[found],
                processors=processors[name],
                busy=busy[name],
            )
            for name, found in partitions.items()
        },
        waiting=tuple(sorted(waiting, key=lambda job: place[job.job_id])),
        overlap=overlap,
        parents={row.organization: row.parent for row in ranked.standings if row.parent},
        after=after,
    )


def _counted(observed: Observed, job: PendingJob, since: int) -> Counted:
    tasks = min(job.tasks, job.at_once or job.tasks)
    return Counted(since, tasks, observed.demand.rooms.widest(job.partition))


def _dependencies(
    lacking: Iterable[PendingJob], dependencies: Dependencies
) -> Mapping[int, tuple[int, ...]]:
    """Returns on which others jobs depend that wait for nothing else; nothing if Slurm is away."""
    waiting = (job for job in lacking if lack_of(job.reason).missing == "dependency")
    dependent = [job.job_id for job in islice(waiting, MOST_DEPENDENT)]
    try:
        return dependencies(dependent) if dependent else {}
    except SlurmError:
        return {}


def _dependent(
    observed: Observed, lacking: Iterable[PendingJob], after: Mapping[int, object]
) -> dict[int, Counted]:
    """Returns the dependent jobs, as they will count; when, nobody knows."""
    return {
        job.job_id: _counted(observed, job, job.submit) for job in lacking if job.job_id in after
    }


def _beginning(observed: Observed, lacking: Iterable[PendingJob]) -> dict[int, Counted]:
    """Returns the jobs that only wait for a time at which they are to begin, as they will count."""
    latest = observed.observation.t + SOON_SECONDS
    return {
        job.job_id: _counted(observed, job, job.eligible)
        for job in lacking
        if lack_of(job.reason).missing == "time"
        and job.eligible is not None
        and job.eligible <= latest
    }
