"""Metrics of the estimates that the rule ``shapley`` ranks by."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge

from shapleyprio.daemon.estimation.messages import WorkResult
from shapleyprio.store import EstimateRow


class EstimateGauges:
    """The metrics of all ledgers' estimates.

    Args:
        registry: where they are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.estimates = Counter(
            "shapleyprio_estimates",
            "Estimates of contributions by result.",
            ["cluster", "result"],
            registry=registry,
        )
        self.t = Gauge(
            "shapleyprio_estimate_timestamp_seconds",
            "Time of the last estimate of contributions, by the cluster's clock.",
            ["cluster"],
            registry=registry,
        )
        self.seconds = Gauge(
            "shapleyprio_estimate_duration_seconds",
            "How long the last estimate took.",
            ["cluster"],
            registry=registry,
        )
        self.coalitions = Gauge(
            "shapleyprio_estimate_coalitions",
            "How many coalitions were valued for the last estimate.",
            ["cluster"],
            registry=registry,
        )
        self.error = Gauge(
            "shapleyprio_estimate_error_part_seconds",
            "Standard error of its estimated contribution; 0 if all coalitions were valued.",
            ["cluster", "organization"],
            registry=registry,
        )


class EstimateMetrics:
    """How exact the newest estimate is, how old, and what it costs; see `EstimatePublisher`.

    Args:
        cluster: its name, or that of one of its ledgers.
        gauges: where that is shown.
    """

    def __init__(self, cluster: str, gauges: EstimateGauges) -> None:
        self._cluster = cluster
        self._gauges = gauges
        self._organizations: list[str] = []
        for result in WorkResult:
            gauges.estimates.labels(cluster, result.value)

    def publish_estimate(self, rows: Sequence[EstimateRow], seconds: float) -> None:
        """Takes over an estimate, and how long it took."""
        self._gauges.estimates.labels(self._cluster, WorkResult.OK.value).inc()
        self._gauges.t.labels(self._cluster).set(rows[0].t)
        self._gauges.seconds.labels(self._cluster).set(seconds)
        self._gauges.coalitions.labels(self._cluster).set(rows[0].coalitions)
        self._withdraw_errors()
        self._organizations = [row.organization for row in rows]
        for row in rows:
            self._gauges.error.labels(self._cluster, row.organization).set(row.error)

    def publish_estimate_failure(self, result: str) -> None:
        """Counts an estimate that failed; the age of the last one stays visible."""
        self._gauges.estimates.labels(self._cluster, result).inc()

    def withdraw(self) -> None:
        """Shows the last estimate no more; what was counted stays."""
        if self._organizations:
            for gauge in (self._gauges.t, self._gauges.seconds, self._gauges.coalitions):
                gauge.remove(self._cluster)
        self._withdraw_errors()

    def _withdraw_errors(self) -> None:
        for organization in self._organizations:
            self._gauges.error.remove(self._cluster, organization)
        self._organizations = []
