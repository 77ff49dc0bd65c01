"""The daemon's metrics: what the last cycle found, absent rather than wrong when it failed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from shapleyprio.daemon.answering.changes import Change
from shapleyprio.daemon.steering.counters import (
    GUARANTEES,
    PUSHES,
    RECORDS,
    WITHOUT_STORE,
    Counters,
)
from shapleyprio.daemon.steering.gauges import (
    GAUGES,
    Found,
    of_changes,
    of_cycle,
    of_drift,
)
from shapleyprio.daemon.steering.report import CycleReport
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store import DriftRow


class Metrics(Collector):
    """Counters of the daemon's life, and what the last cycle and the last replay found.

    Standings are there if the last cycle succeeded, drifts if the last replay did.

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
        return {**self._of_changes, **self._of_cycle, **self._of_drift}

    def of(self, ledger: str) -> Metrics:
        """Returns the metrics of a ledger of the cluster, which are collected with these."""
        if ledger not in self._by_ledger:
            self._by_ledger[ledger] = Metrics(ledger, beside=self)
        return self._by_ledger[ledger]

    def withdraw(self) -> None:
        """Withdraws what was found; what was counted stays."""
        self._of_cycle = self._of_changes = self._of_drift = {}

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
        if report.table_written is not None:
            self.counters.table.labels(self._cluster).set(report.table_written)
        elif not report.keeps_table:
            self.counters.table.remove(self._cluster)

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

    def collect(self) -> Iterator[Metric]:
        """Yields whether we lead, and what the last cycle and replay found, if they succeeded."""
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
