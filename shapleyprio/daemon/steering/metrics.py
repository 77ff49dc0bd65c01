"""The daemon's metrics: what it counts, and what was found last, absent rather than wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from shapleyprio.common.wording import DAY, HOUR
from shapleyprio.daemon.answering.changes import Change
from shapleyprio.daemon.drift.messages import DriftResult
from shapleyprio.daemon.estimation.messages import WorkResult
from shapleyprio.daemon.forecasting.scores import ForecastScore
from shapleyprio.daemon.pushing.lasting import ASKED, BROKEN, KEPT
from shapleyprio.daemon.steering.gauges import (
    GAUGES,
    Found,
    of_changes,
    of_cycle,
    of_drift,
    of_estimate,
    of_forecasts,
)
from shapleyprio.daemon.steering.report import FAILURES, CycleReport
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store import DriftRow, EstimateRow

RECORDS = ("seen", "kept", "unstarted", "quarantined", "late", "withdrawn")

PUSHES = ("applied", "refused", "unconfirmed")

WAITS = (10, 60, 300, 900, HOUR, 4 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY)
"""Seconds up to which waits are counted."""

WITHOUT_STORE = "without_store"
"""State of writes of which the journal alone knows."""

SUBMISSIONS = ("given", "missed")

GUARANTEES = (ASKED, KEPT, BROKEN)

OUTCOMES = ("ok", "dry_run", *FAILURES.values(), "defect")
"""Outcomes of cycles."""


class Counters:
    """What is counted from the daemon's start on, for all ledgers of the cluster."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"shapleyprio_{name}", text, ["cluster", *labels], registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"shapleyprio_{name}", text, ["cluster"], registry=registry)

        self.records = counter("records", "Accounting records by result.", "result")
        self.pushes = counter("pushes", "Writes into Slurm by state.", "state")
        self.cycles = counter("cycles", "Cycles by outcome.", "outcome")
        self.seconds = Histogram(
            "shapleyprio_cycle_phase_duration_seconds",
            "How long the phases of a cycle took.",
            ["cluster", "phase"],
            registry=registry,
        )
        self.waits = Histogram(
            "shapleyprio_organization_wait_seconds",
            "Waits, from eligible to start, of its jobs that started.",
            ["cluster", "organization", "partition"],
            buckets=WAITS,
            registry=registry,
        )
        self.success = gauge(
            "last_success_timestamp_seconds", "When a cycle last succeeded, by the cluster's clock."
        )
        self.submissions = counter(
            "submissions",
            "Pending jobs, when first seen, by whether the table of points had given them theirs.",
            "result",
        )
        self.table = gauge(
            "table_timestamp_seconds",
            "When the table of points was last written, by the cluster's clock.",
        )
        self.after_end = counter(
            "work_after_end_processor_seconds",
            "Processor-seconds of its jobs after their end; they do not count.",
            "organization",
        )
        self.guarantees = counter(
            "guarantees",
            "Jobs that asked for its guarantee, and those for which it was kept or broken.",
            "organization",
            "result",
        )
        self.conflicts = counter(
            "store_conflicts",
            "Transactions that the database rolled back because of others and the daemon retried.",
        )
        self.drift_runs = counter("drift_runs", "Replays of the last window by result.", "result")
        self.estimates = counter("estimates", "Estimates of contributions by result.", "result")
        self.forecasts = counter(
            "forecasts", "Forecasts of all waiting jobs' starts by result.", "result"
        )
        self.drift_until = gauge(
            "drift_timestamp_seconds",
            "End of the last window that was replayed, by the cluster's clock.",
        )
        build = Info("shapleyprio_build", "The version that runs.", registry=registry)
        build.info({"version": version("shapleyprio")})

    def begin(self, ledger: str) -> None:
        """Has all counters of a ledger there: one that is not looks as if there were no daemon."""
        for counter, values in (
            (self.records, RECORDS),
            (self.pushes, (*PUSHES, WITHOUT_STORE)),
            (self.cycles, OUTCOMES),
            (self.submissions, SUBMISSIONS),
            (self.drift_runs, [result.value for result in DriftResult]),
            (self.estimates, [result.value for result in WorkResult]),
            (self.forecasts, [result.value for result in WorkResult]),
        ):
            for value in values:
                counter.labels(ledger, value)
        self.conflicts.labels(ledger)

    def end(self, ledger: str) -> None:
        """Has none of a ledger that is no more: one that stands still looks as if it hung."""
        for metric in vars(self).values():
            metric.remove_by_labels({"cluster": ledger})


class Metrics(Collector):
    """Counters of the daemon's life, and what was found last.

    Standings are there if the last cycle succeeded, drifts if the last replay did; the last good
    estimate and the last good forecasts stay.

    Args:
        cluster: its name, or that of one of its ledgers if pools split it; `of` has the others.
        beside: those that were there before, of other ledgers of the cluster.

    Attributes:
        leads: asked at each scrape whether this process has the lease; None for one that asks for
            none.
    """

    def __init__(self, cluster: str, beside: Metrics | None = None) -> None:
        self._cluster = cluster
        self.leads: Callable[[], bool] | None = None
        self._of_cycle: Found = {}
        self._of_changes: Found = {}
        self._of_drift: Found = {}
        self._of_estimate: Found = {}
        self._of_forecasts: Found = {}
        self._by_ledger: dict[str, Metrics] = {cluster: self}
        if beside is None:
            self.registry = CollectorRegistry()
            self.registry.register(self)
            self.counters = Counters(self.registry)
        else:
            self.registry, self.counters = beside.registry, beside.counters
        self.counters.begin(cluster)

    @property
    def found(self) -> Found:
        """What is known of the ledger, for `GAUGES`."""
        beside = {**self._of_drift, **self._of_estimate, **self._of_forecasts}
        return {**self._of_changes, **self._of_cycle, **beside}

    def of(self, ledger: str) -> Metrics:
        """Returns the metrics of a ledger of the cluster, which are collected with these."""
        if ledger not in self._by_ledger:
            self._by_ledger[ledger] = Metrics(ledger, beside=self)
        return self._by_ledger[ledger]

    def withdraw(self) -> None:
        """Withdraws what was found, and when; what was counted stays."""
        self._of_cycle = self._of_changes = {}
        self.counters.success.remove(self._cluster)
        self.counters.table.remove(self._cluster)
        self.withdraw_drifts()

    def withdraw_others(self, ledgers: Collection[str]) -> None:
        """Withdraws all that is known of all but these ledgers of the cluster."""
        for ledger in self._by_ledger.keys() - set(ledgers):
            del self._by_ledger[ledger]
            self.counters.end(ledger)

    def publish(self, report: CycleReport, *, dry_run: bool = False) -> None:
        """Takes over what a cycle found and did, or in a dry run would have done."""
        self._of_cycle = of_cycle(report)
        self.counters.cycles.labels(self._cluster, "dry_run" if dry_run else "ok").inc()
        for result in RECORDS:
            self.counters.records.labels(self._cluster, result).inc(getattr(report.tally, result))
        for state in PUSHES:
            self.counters.pushes.labels(self._cluster, state).inc(getattr(report.pushed, state))
        self.counters.submissions.labels(self._cluster, "given").inc(len(report.plan.at_submission))
        self.counters.submissions.labels(self._cluster, "missed").inc(report.plan.missed)
        for row in report.ranked.standings:
            found = report.after_end.get(row.organization, 0)
            self.counters.after_end.labels(self._cluster, row.organization).inc(found)
            for result in GUARANTEES:
                jobs = report.plan.guarantees.get((row.organization, result), 0)
                self.counters.guarantees.labels(self._cluster, row.organization, result).inc(jobs)
        for wait in report.jobs.waits:
            labels = (self._cluster, wait.organization, wait.partition)
            self.counters.waits.labels(*labels).observe(wait.seconds)
        for phase, seconds in report.seconds.items():
            self.counters.seconds.labels(self._cluster, phase).observe(seconds)
        self.counters.success.labels(self._cluster).set(report.t)
        self.counters.conflicts.labels(self._cluster).inc(report.conflicts)
        if not report.keeps_table:
            self.counters.table.remove(self._cluster)
        elif report.table_written is not None:
            self.counters.table.labels(self._cluster).set(report.table_written)
        else:
            self.counters.table.labels(self._cluster)  # is 0 until one can be written

    def publish_changes(self, changes: Sequence[Change]) -> None:
        """Takes over what changed lately, the oldest first."""
        self._of_changes = of_changes(changes)

    def publish_failure(self, outcome: str) -> None:
        """Withdraws what the cycle before published, and counts a failed cycle."""
        self._of_cycle = {}
        self.counters.cycles.labels(self._cluster, outcome).inc()

    def publish_without_store(self, written: int) -> None:
        """Counts what was written while the store was away."""
        self.counters.pushes.labels(self._cluster, WITHOUT_STORE).inc(written)

    def publish_drifts(
        self, rows: Sequence[DriftRow], turns: Mapping[str, tuple[int, int]], seconds: float
    ) -> None:
        """Takes over what a replay found, and how long it took."""
        self._of_drift = of_drift(rows, turns, seconds)
        self.counters.drift_runs.labels(self._cluster, "ok").inc()
        self.counters.drift_until.labels(self._cluster).set(rows[0].t)

    def publish_drift_failure(self, result: str) -> None:
        """Withdraws the rows published before, and counts a failed replay."""
        self._of_drift = {}
        self.counters.drift_runs.labels(self._cluster, result).inc()

    def withdraw_drifts(self) -> None:
        """Shows the last replay no more; what was counted stays."""
        self._of_drift = {}
        self.counters.drift_until.remove(self._cluster)

    def publish_estimate(self, rows: Sequence[EstimateRow], seconds: float) -> None:
        """Takes over an estimate, and how long it took."""
        self._of_estimate = of_estimate(rows, seconds)
        self.counters.estimates.labels(self._cluster, WorkResult.OK.value).inc()

    def publish_estimate_failure(self, result: str) -> None:
        """Counts an estimate that failed; the age of the last one stays visible."""
        self.counters.estimates.labels(self._cluster, result).inc()

    def withdraw_estimate(self) -> None:
        """Shows the last estimate no more; what was counted stays."""
        self._of_estimate = {}

    def publish_forecasts(
        self, t: int, seconds: float, waits: Mapping[str, int], scores: Sequence[ForecastScore]
    ) -> None:
        """Takes over forecasts, how long they took, and what those before were worth."""
        self._of_forecasts = of_forecasts(t, seconds, waits, scores)
        self.counters.forecasts.labels(self._cluster, WorkResult.OK.value).inc()

    def publish_forecast_failure(self, result: str) -> None:
        """Counts forecasts that failed; the age of the last ones stays visible."""
        self.counters.forecasts.labels(self._cluster, result).inc()

    def withdraw_forecasts(self) -> None:
        """Shows the last forecasts no more; what was counted stays."""
        self._of_forecasts = {}

    def collect(self) -> Iterator[Metric]:
        """Yields whether we lead, and what was found last."""
        if self.leads is not None:
            leader = GaugeMetricFamily(
                "shapleyprio_leader",
                "Whether this daemon has the lease and steers the cluster: 1; a standby has 0.",
                labels=["cluster"],
            )
            leader.add_metric([cluster_behind(self._cluster)], float(self.leads()))
            yield leader
        ledgers = dict(self._by_ledger)
        yield from _families({name: one.found for name, one in ledgers.items()})


def _families(found: Mapping[str, Found]) -> Iterator[Metric]:
    """Yields the metrics that some ledger has; ledger -> what was found of it."""
    for name, (documentation, labels) in GAUGES.items():
        if not any(name in of_ledger for of_ledger in found.values()):
            continue
        family = GaugeMetricFamily(
            f"shapleyprio_{name}", documentation, labels=["cluster", *labels]
        )
        for ledger, of_ledger in found.items():
            for key, value in of_ledger.get(name, ()):
                family.add_metric([ledger, *key], float(value))
        yield family
