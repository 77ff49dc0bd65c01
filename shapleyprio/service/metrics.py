"""The daemon's metrics: what the last cycle found, absent rather than wrong when it failed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from shapleyprio.service.report import Report

PHASES = ("account", "observe", "rank", "push")

BY_ORGANIZATION = {
    "contribution_part_seconds": "Contribution: worth of the parts executed on its processors.",
    "utility_part_seconds": "Utility: worth of the parts of its jobs.",
    "balance_part_seconds": "Balance: contribution minus utility.",
    "priority_points": "Priority points that its pending jobs get.",
    "pending_jobs": "Jobs that wait.",
    "running_jobs": "Jobs that run.",
    "owned_processors": "Processors it brings, in the configured weight.",
}
"""Metric of every organization, without prefix -> its help text."""


class Metrics(Collector):
    """Counters of the daemon's life, and the standings of the last cycle if it succeeded."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._last: Report | None = None
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._records = Counter(
            "shapleyprio_records",
            "Accounting records by what became of them.",
            ["cluster", "result"],
            registry=self.registry,
        )
        self._pushes = Counter(
            "shapleyprio_pushes",
            "Writes into Slurm by what became of them.",
            ["cluster", "state"],
            registry=self.registry,
        )
        self._cycles = Counter(
            "shapleyprio_cycles",
            "Cycles by outcome.",
            ["cluster", "outcome"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "shapleyprio_cycle_phase_duration_seconds",
            "How long the phases of a cycle took.",
            ["cluster", "phase"],
            registry=self.registry,
        )
        self._success = Gauge(
            "shapleyprio_last_success_timestamp_seconds",
            "When a cycle last succeeded, by the cluster's clock.",
            ["cluster"],
            registry=self.registry,
        )
        self._lag = Gauge(
            "shapleyprio_ledger_lag_seconds",
            "Age of the last second up to which accounting is known to be complete.",
            ["cluster"],
            registry=self.registry,
        )
        build = Info("shapleyprio_build", "The version that runs.", registry=self.registry)
        build.info({"version": version("shapleyprio")})

    def publish(self, report: Report) -> None:
        """Takes over what a cycle found and did."""
        self._last = report
        self._cycles.labels(self._cluster, "ok").inc()
        for result in ("seen", "kept", "waiting", "refused", "late", "withdrawn"):
            self._records.labels(self._cluster, result).inc(getattr(report.tally, result))
        for state in ("applied", "refused", "unconfirmed"):
            self._pushes.labels(self._cluster, state).inc(getattr(report.pushed, state))
        for phase, seconds in report.seconds.items():
            self._seconds.labels(self._cluster, phase).observe(seconds)
        self._success.labels(self._cluster).set(report.t)
        self._lag.labels(self._cluster).set(report.lag_seconds)

    def publish_failure(self, outcome: str) -> None:
        """A cycle failed: what it would have told is absent until one succeeds."""
        self._last = None
        self._cycles.labels(self._cluster, outcome).inc()

    def collect(self) -> Iterator[Metric]:
        """Yields the standings of the last cycle, if it succeeded."""
        last = self._last
        if last is None:
            return
        for name, documentation in BY_ORGANIZATION.items():
            family = GaugeMetricFamily(
                f"shapleyprio_organization_{name}",
                documentation,
                labels=["cluster", "organization"],
            )
            for row in last.standings:
                values = {
                    "contribution_part_seconds": row.contribution,
                    "utility_part_seconds": row.utility,
                    "balance_part_seconds": row.contribution - row.utility,
                    "priority_points": row.priority,
                    "pending_jobs": row.pending,
                    "running_jobs": row.running,
                    "owned_processors": row.processors,
                }
                family.add_metric([self._cluster, row.organization], values[name])
            yield family
