"""Who competes for what at the end of a cycle, for forecasts of starts."""

from __future__ import annotations

from shapleyprio.daemon.forecasting.messages import Competitor, ForecastRequest, KnownNode
from shapleyprio.daemon.ranking.observing import Observed
from shapleyprio.daemon.ranking.ranking import Ranked
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.port import in_slurms_order


def competition(observed: Observed, ranked: Ranked, overlap: int) -> ForecastRequest:
    """Returns what forecasts go by.

    Args:
        observed: the cluster as it is; jobs that do not count have no forecast.
        ranked: the organizations.
        overlap: seconds of accounting that every cycle reads again.
    """
    observation = observed.observation
    names = [row.organization for row in ranked.standings]
    owners = {name: number for number, name in enumerate((*names, NOBODY))}
    place = {
        job.job_id: number
        for number, job in enumerate(sorted(observation.pending, key=in_slurms_order))
    }
    waiting = observation.counting_jobs(observed.demand.counting())
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
    )
