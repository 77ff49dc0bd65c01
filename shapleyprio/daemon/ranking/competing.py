"""Who competes for what at the end of a cycle, for forecasts of starts."""

from __future__ import annotations

from collections.abc import Mapping

from shapleyprio.daemon.forecasting.messages import Competitor, ForecastRequest
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
    usable = observation.in_partitions(lambda node: node.usable(observation.tres))
    competitors = [
        Competitor(
            item.name,
            ranking.trajectories[item.name],
            tuple(sorted(usable.get(item.name, {}).items())),
        )
        for item in situation.organizations
    ]
    nobodys = tuple(sorted(usable.get(NOBODY, {}).items()))
    place = {
        job.job_id: number
        for number, job in enumerate(sorted(observation.pending, key=in_slurms_order))
    }
    waiting = observation.counting_jobs(counting)
    return ForecastRequest(
        t=observation.t,
        rule=ranking.rule,
        competitors=(*competitors, Competitor(NOBODY, None, nobodys)),
        waiting=tuple(sorted(waiting, key=lambda job: place[job.job_id])),
        overlap=overlap,
    )
