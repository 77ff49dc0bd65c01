"""Metrics of what works beside the cycles: estimates of contributions and forecasts of starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge

from shapleyprio.daemon.estimation.messages import WorkResult
from shapleyprio.daemon.forecasting.scores import ForecastScore
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


class ForecastGauges:
    """The metrics of all ledgers' forecasts.

    Args:
        registry: where they are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.forecasts = Counter(
            "shapleyprio_forecasts",
            "Forecasts of all waiting jobs' starts by result.",
            ["cluster", "result"],
            registry=registry,
        )
        self.t = Gauge(
            "shapleyprio_forecast_timestamp_seconds",
            "Time of the last forecasts of starts, by the cluster's clock.",
            ["cluster"],
            registry=registry,
        )
        self.seconds = Gauge(
            "shapleyprio_forecast_duration_seconds",
            "How long the last forecasts took.",
            ["cluster"],
            registry=registry,
        )
        self.wait = Gauge(
            "shapleyprio_organization_expected_wait_seconds",
            "Wait that a job of one processor and a minute would have, submitted at that time.",
            ["cluster", "organization"],
            registry=registry,
        )
        self.coverage = Gauge(
            "shapleyprio_forecast_coverage_ratio",
            "Share of the last month's intervals in which the jobs started, by how long ahead.",
            ["cluster", "lead"],
            registry=registry,
        )
        self.error = Gauge(
            "shapleyprio_forecast_error_seconds",
            "Median absolute error of the last month's medians, by how long ahead.",
            ["cluster", "lead"],
            registry=registry,
        )


class ForecastMetrics:
    """How good and how old forecasts are, and what they cost; see `ForecastPublisher`.

    Args:
        cluster: its name, or that of one of its ledgers.
        gauges: where that is shown.
    """

    def __init__(self, cluster: str, gauges: ForecastGauges) -> None:
        self._cluster = cluster
        self._gauges = gauges
        self._organizations: list[str] | None = None
        self._leads: list[str] = []
        for result in WorkResult:
            gauges.forecasts.labels(cluster, result.value)

    def publish_forecasts(self, t: int, seconds: float, waits: Mapping[str, int]) -> None:
        """Takes over that there are forecasts, how long they took, and organizations' waits."""
        self._withdraw_forecasts()
        self._gauges.forecasts.labels(self._cluster, WorkResult.OK.value).inc()
        self._gauges.t.labels(self._cluster).set(t)
        self._gauges.seconds.labels(self._cluster).set(seconds)
        self._organizations = list(waits)
        for organization, wait in waits.items():
            self._gauges.wait.labels(self._cluster, organization).set(wait)

    def publish_forecast_failure(self, result: str) -> None:
        """Counts forecasts that failed; the age of the last ones stays visible."""
        self._gauges.forecasts.labels(self._cluster, result).inc()

    def publish_scores(self, scores: Sequence[ForecastScore]) -> None:
        """Takes over what the last month's forecasts were worth."""
        self._withdraw_scores()
        self._leads = [score.lead for score in scores]
        for score in scores:
            self._gauges.coverage.labels(self._cluster, score.lead).set(score.coverage)
            self._gauges.error.labels(self._cluster, score.lead).set(score.error)

    def withdraw(self) -> None:
        """Shows the last forecasts no more; what was counted stays."""
        self._withdraw_forecasts()
        self._withdraw_scores()

    def _withdraw_forecasts(self) -> None:
        if self._organizations is not None:
            self._gauges.t.remove(self._cluster)
            self._gauges.seconds.remove(self._cluster)
        for organization in self._organizations or ():
            self._gauges.wait.remove(self._cluster, organization)
        self._organizations = None

    def _withdraw_scores(self) -> None:
        for lead in self._leads:
            self._gauges.coverage.remove(self._cluster, lead)
            self._gauges.error.remove(self._cluster, lead)
        self._leads = []
