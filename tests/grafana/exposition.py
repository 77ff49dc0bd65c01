"""Every metric that the daemon serves."""

from __future__ import annotations

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from shapleyprio.daemon.answering.changes import Change
from shapleyprio.daemon.forecasting.scores import ForecastScore
from shapleyprio.daemon.ranking.observing import JobsFound
from shapleyprio.daemon.ranking.ranking import Ranked
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.daemon.steering.report import CycleReport
from shapleyprio.fairness.pool import PartState, PoolPart
from shapleyprio.store import (
    DriftRow,
    EstimateRow,
    PendingJobs,
    StandingRow,
    UserAfterEnd,
    Wait,
)

SUFFIXES = {"counter": "_total", "info": "_info"}


def everything() -> str:
    """What is served after a cycle, a replay, an estimate and forecasts that succeeded."""
    metrics = Metrics("c")
    metrics.leads = lambda: True
    standings = [
        StandingRow(
            cycle=1, organization=name, t=1, contribution=1, utility=1, score=0, priority=1,
            pending=1, running=1, processors=1, parts=1, parent=parent,
        )
        for name, parent in (("a", None), ("b", "a"))
    ]  # fmt: skip
    drifts = [
        DriftRow(
            t=1, organization="a", schedule=schedule, begin=0, reference="ref", utility=1, fair=1,
            parts=1,
        )
        for schedule in ("recorded", "directcontr", "fairshare", "alone")
    ]  # fmt: skip
    estimate = EstimateRow(
        t=1, organization="a", begin=0, value=1, rate=1, acceleration=1, denominator=1, error=1,
        utility=1, alone=1, without=1, parts=1, coalitions=1,
    )  # fmt: skip
    other = PoolPart(cluster="d", since=0, t=0, state=PartState.CURRENT, balances={})
    metrics.publish(
        CycleReport(
            number=1,
            ranked=Ranked(standings=standings, pool=[other]),
            jobs=JobsFound(
                waits=[Wait("a", "p", 1)],
                pending_jobs=[PendingJobs(organization="a", partition="p", jobs=1, since=0)],
            ),
            users_after_end=[
                UserAfterEnd(user="u", organization="a", jobs=1, processor_seconds=1, last=1)
            ],
            seconds={"push": 1.0},
            table_written=1,
        )
    )
    metrics.publish_changes([Change(at=1, kind="upgrade", what="Slurm 1 \u2192 2")])
    metrics.publish_drifts(drifts, {"recorded": (2, 1)}, seconds=1.5)
    metrics.publish_estimate([estimate], seconds=1.5)
    score = ForecastScore(lead="up to 1 h", count=1, coverage=1, error=1)
    metrics.publish_forecasts(1, 1.5, {"a": 60}, [score])
    return generate_latest(metrics.registry).decode()


def metrics_and_labels() -> dict[str, set[str]]:
    """Metric -> its labels, without those that only say when counting began."""
    exposed = {}
    for family in text_string_to_metric_families(everything()):
        if not family.name.endswith("_created"):
            exposed[family.name + SUFFIXES.get(family.type, "")] = {
                label for sample in family.samples for label in sample.labels if label != "le"
            }
    return exposed
