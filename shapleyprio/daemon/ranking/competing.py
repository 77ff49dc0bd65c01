"""Who competes for what at the end of a cycle, for forecasts of starts."""

from __future__ import annotations

from collections.abc import Mapping

from shapleyprio.daemon.forecasting.messages import Competitor, ForecastRequest, KnownNode
from shapleyprio.daemon.ranking.demand import Counted
from shapleyprio.daemon.ranking.observation import Observation
from shapleyprio.fairness.rule import Ranking
from shapleyprio.fairness.situation import Situation
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.port import in_slurms_order


def competition(
    observation: Observation,
    situation: Situation,
    ranking: Ranking,
    counting: Mapping[int, Counted],
    overlap: int,
) -> ForecastRequest:
    """Returns what forecasts go by.

    Args:
        observation: the cluster as it is.
        situation: that the organizations were ranked by.
        ranking: of them.
        counting: job id -> what counts of it; the others have no forecast.
        overlap: seconds of accounting that every cycle reads again.
    """
    names = [item.name for item in situation.organizations]
    owners = {name: number for number, name in enumerate((*names, NOBODY))}
    place = {
        job.job_id: number
        for number, job in enumerate(sorted(observation.pending, key=in_slurms_order))
    }
    waiting = observation.counting_jobs(counting)
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
        rule=ranking.rule,
        competitors=(
            *(Competitor(name, ranking.trajectories[name]) for name in names),
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
    )
