"""What the daemon counts from its start on."""

from __future__ import annotations

from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from shapleyprio.common.wording import DAY, HOUR
from shapleyprio.daemon.drift.messages import DriftResult
from shapleyprio.daemon.pushing.lasting import ASKED, BROKEN, KEPT
from shapleyprio.daemon.steering.outcomes import FAILURES

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
        self.records = Counter(
            "shapleyprio_records",
            "Accounting records by result.",
            ["cluster", "result"],
            registry=registry,
        )
        self.pushes = Counter(
            "shapleyprio_pushes",
            "Writes into Slurm by state.",
            ["cluster", "state"],
            registry=registry,
        )
        self.cycles = Counter(
            "shapleyprio_cycles",
            "Cycles by outcome.",
            ["cluster", "outcome"],
            registry=registry,
        )
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
        self.success = Gauge(
            "shapleyprio_last_success_timestamp_seconds",
            "When a cycle last succeeded, by the cluster's clock.",
            ["cluster"],
            registry=registry,
        )
        self.submissions = Counter(
            "shapleyprio_submissions",
            "Pending jobs, when first seen, by whether the table of points had given them theirs.",
            ["cluster", "result"],
            registry=registry,
        )
        self.table = Gauge(
            "shapleyprio_table_timestamp_seconds",
            "When the table of points was last written, by the cluster's clock.",
            ["cluster"],
            registry=registry,
        )
        self.after_end = Counter(
            "shapleyprio_work_after_end_processor_seconds",
            "Processor-seconds of its jobs after their end; they do not count.",
            ["cluster", "organization"],
            registry=registry,
        )
        self.guarantees = Counter(
            "shapleyprio_guarantees",
            "Jobs that asked for its guarantee, and those for which it was kept or broken.",
            ["cluster", "organization", "result"],
            registry=registry,
        )
        self.conflicts = Counter(
            "shapleyprio_store_conflicts",
            "Transactions that the database rolled back because of others and the daemon retried.",
            ["cluster"],
            registry=registry,
        )
        self.drift_runs = Counter(
            "shapleyprio_drift_runs",
            "Replays of the last window by result.",
            ["cluster", "result"],
            registry=registry,
        )
        self.drift_until = Gauge(
            "shapleyprio_drift_timestamp_seconds",
            "End of the last window that was replayed, by the cluster's clock.",
            ["cluster"],
            registry=registry,
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
        ):
            for value in values:
                counter.labels(ledger, value)
        self.conflicts.labels(ledger)

    def end(self, ledger: str) -> None:
        """Has none of a ledger that is no more: one that stands still looks as if it hung."""
        for metric in vars(self).values():
            metric.remove_by_labels({"cluster": ledger})
