"""Metrics of the estimates that the rule ``shapley`` ranks by."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge

from shapleyprio.estimation.messages import EstimateResult
from shapleyprio.store import EstimateRow


class EstimateMetrics:
    """How exact the newest estimate is, how old, and what it costs; see `EstimatePublisher`.

    Args:
        cluster: its name.
        registry: where the metrics are registered.
    """

    def __init__(self, cluster: str, registry: CollectorRegistry) -> None:
        self._cluster = cluster
        self._estimates = Counter(
            "shapleyprio_estimates",
            "Estimates of contributions by what became of them.",
            ["cluster", "result"],
            registry=registry,
        )
        for result in EstimateResult:
            self._estimates.labels(cluster, result.value)
        self._t = Gauge(
            "shapleyprio_estimate_timestamp_seconds",
            "For when contributions were last estimated, by the cluster's clock.",
            ["cluster"],
            registry=registry,
        )
        self._seconds = Gauge(
            "shapleyprio_estimate_duration_seconds",
            "How long the last estimate took.",
            ["cluster"],
            registry=registry,
        )
        self._coalitions = Gauge(
            "shapleyprio_estimate_coalitions",
            "How many coalitions were valued for the last estimate.",
            ["cluster"],
            registry=registry,
        )
        self._error = Gauge(
            "shapleyprio_estimate_error_part_seconds",
            "Standard error of its estimated contribution; 0 if all coalitions were valued.",
            ["cluster", "organization"],
            registry=registry,
        )

    def publish_estimate(self, rows: Sequence[EstimateRow], seconds: float) -> None:
        """Takes over an estimate, and how long it took."""
        self._estimates.labels(self._cluster, EstimateResult.OK.value).inc()
        self._t.labels(self._cluster).set(rows[0].t)
        self._seconds.labels(self._cluster).set(seconds)
        self._coalitions.labels(self._cluster).set(rows[0].coalitions)
        self._error.clear()
        for row in rows:
            self._error.labels(self._cluster, row.organization).set(row.error)

    def publish_estimate_failure(self, result: str) -> None:
        """Counts an estimate that failed; how old the last one is goes on to be seen."""
        self._estimates.labels(self._cluster, result).inc()
