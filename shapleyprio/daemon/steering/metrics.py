"""The daemon's metrics: what the last cycle found, absent rather than wrong when it failed."""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from importlib.metadata import version
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from shapleyprio.daemon.answering.changes import Change
from shapleyprio.daemon.drift.figures import alone_gains_of, drifts_of, unfairness_of
from shapleyprio.daemon.drift.messages import DriftResult
from shapleyprio.daemon.pushing.by_hand import Kind
from shapleyprio.daemon.pushing.going_first import ASKED, BROKEN, KEPT
from shapleyprio.daemon.steering.outcomes import FAILURES
from shapleyprio.daemon.steering.report import CycleReport
from shapleyprio.fairness.pool import PartState, cluster_behind
from shapleyprio.store import DriftRow, StandingRow

RECORDS = ("seen", "kept", "unstarted", "quarantined", "late", "withdrawn")
PUSHES = ("applied", "refused", "unconfirmed")
WAITS = (10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, *(days * 86_400 for days in (1, 2, 4, 7)))
"""Seconds up to which waits are counted."""
WITHOUT_STORE = "without_store"
"""State of writes of which the journal alone knows."""
SUBMISSIONS = ("given", "missed")
GUARANTEES = (ASKED, KEPT, BROKEN)
OUTCOMES = ("ok", "dry_run", *FAILURES.values(), "defect")
"""Outcomes of cycles."""

BY_ORGANIZATION = {
    "contribution_part_seconds": (
        "Contribution that the ranking counts: under directcontr worth of the parts executed on "
        "its processors, under shapley an estimate of its Shapley value."
    ),
    "utility_part_seconds": "Utility: worth of the parts of its jobs.",
    "balance_per_part_seconds": (
        "Balance, spread over all work done: contribution minus utility, by the completed parts; "
        "above zero it is owed."
    ),
    "score": "Score that the rule ranks it by, the highest first; under directcontr the balance.",
    "priority_points": "Priority points that its pending jobs get.",
    "pending_jobs": "Jobs that wait.",
    "running_jobs": "Jobs that run.",
    "owned_processors": "Processors it brings, in the configured weight.",
}
"""Metric of every organization, without prefix -> its help text."""

MOST_CHANGES = 20
LONGEST_CHANGE = 200
"""Changes, and characters of each, that the metrics have."""

Described = Mapping[str, tuple[str, tuple[str, ...]]]
"""Metric without prefix -> its help text and its labels but for cluster."""

OF_CYCLE: Described = {
    "ledger_lag_seconds": (
        "Age of the last second up to which accounting is known to be complete.",
        (),
    ),
    "postponed_writes": ("Writes into Slurm that the last cycle left to the next.", ()),
    "pause_seconds": ("Time since the begin of the present pause; 0 without one.", ()),
    "jobs_put_first": ("Pending jobs that go first by exceptions and guarantees.", ()),
    "jobs_of_unknown_accounts": (
        "Pending jobs under accounts that Slurm's accounting does not know.",
        (),
    ),
    "ranking_rule_info": (
        "The rule that ranked the organizations; directcontr while shapley has no estimate.",
        ("rule",),
    ),
    "foreign_priorities": (
        "Accounts that somebody else has set, pending jobs that do not have the points of their "
        "account, and those at which somebody has set priority, site factor or nice.",
        ("of",),
    ),
    "pool_age_seconds": (
        "Age of another cluster's last cycle in the pool, by this cluster's clock.",
        ("other",),
    ),
    "pool_stale": (
        "Whether that is too old (its last balances count), missing, or in another weight.",
        ("other",),
    ),
    "completed_parts": (
        "Parts of all jobs completed since the ledger's opening.",
        (),
    ),
    "user_work_after_end_processor_seconds": (
        "Processor-seconds of a user's jobs after their end, of jobs that ended in the last day; "
        "for the users with the most.",
        ("organization", "user"),
    ),
    "organization_oldest_pending_seconds": (
        "Wait so far of the oldest pending job that could start; absent without one.",
        ("organization", "partition"),
    ),
    "organization_union_info": (
        "The union that it stands in, by its parent; absent for one that stands alone.",
        ("organization", "parent"),
    ),
    **{f"organization_{name}": (text, ("organization",)) for name, text in BY_ORGANIZATION.items()},
}
"""What the last cycle found."""

OF_CHANGES: Described = {
    "change_timestamp_seconds": (
        "When something changed in the last day, as `shapleyprio changes` shows it.",
        ("kind", "what"),
    ),
}
"""What changed lately; also while cycles fail."""

OF_DRIFT: Described = {
    "organization_drift_seconds": (
        "By how much its jobs came ahead of the fair schedule in the last window, spread over "
        "everybody's work; negative: late.",
        ("organization", "schedule"),
    ),
    "unfairness_seconds": (
        "By how much a part came too early or too late, on average, against the fair schedule.",
        ("schedule",),
    ),
    "contested_moments": (
        "Moments of the window at which the order of organizations decided what started.",
        ("schedule",),
    ),
    "out_of_turn_moments": (
        "Those of them at which something started that Ref would not have started then.",
        ("schedule",),
    ),
    "organization_alone_gain_ratio": (
        "By what part its utility would be higher alone; negative: it gains by the consortium.",
        ("organization",),
    ),
    "drift_reference_info": (
        "What counts as fair: ref, or rand where there are too many organizations for it.",
        ("reference",),
    ),
    "drift_window_seconds": ("Length of the last window that was replayed.", ()),
    "drift_duration_seconds": ("How long the last replay took.", ()),
}
"""What the replay of the last window found."""

Found = Mapping[str, Iterable[tuple[tuple[str, ...], float | Fraction]]]
"""Metric without prefix -> values of its labels but for cluster, and what it is there."""


class _Counters:
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
            "How long its jobs that started had waited since they could have started.",
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
        self._last: CycleReport | None = None
        self._changes: Sequence[Change] = ()
        self._drift: tuple[Sequence[DriftRow], Mapping[str, tuple[int, int]], float] | None = None
        self._by_ledger: dict[str, Metrics] = {cluster: self}
        if beside is None:
            self.registry = CollectorRegistry()
            self.registry.register(self)
            self.counters = _Counters(self.registry)
        else:
            self.registry, self.counters = beside.registry, beside.counters
        self.counters.begin(cluster)

    def of(self, ledger: str) -> Metrics:
        """Returns the metrics of a ledger of the cluster, which are collected with these."""
        if ledger not in self._by_ledger:
            self._by_ledger[ledger] = Metrics(ledger, beside=self)
        return self._by_ledger[ledger]

    def withdraw(self) -> None:
        """Withdraws what the last cycle and the last replay found."""
        self._last = self._drift = None

    def withdraw_others(self, ledgers: Collection[str]) -> None:
        """Withdraws it of all but these ledgers of the cluster."""
        for ledger, one in self._by_ledger.items():
            if ledger not in ledgers:
                one.withdraw()

    def publish(self, report: CycleReport, *, dry_run: bool = False) -> None:
        """Takes over what a cycle found and did, or in a dry run would have done."""
        self._last = report
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

    def publish_changes(self, changes: Sequence[Change]) -> None:
        """Takes over what changed lately, the oldest first."""
        self._changes = changes[-MOST_CHANGES:]

    def publish_failure(self, outcome: str) -> None:
        """Withdraws what the cycle before published, and counts a failed cycle."""
        self._last = None
        self.counters.cycles.labels(self._cluster, outcome).inc()

    def publish_without_store(self, written: int) -> None:
        """Counts what was written while the store was away."""
        self.counters.pushes.labels(self._cluster, WITHOUT_STORE).inc(written)

    def publish_drifts(
        self, rows: Sequence[DriftRow], turns: Mapping[str, tuple[int, int]], seconds: float
    ) -> None:
        """Takes over what a replay found, and how long it took."""
        self._drift = rows, turns, seconds
        self.counters.drift_runs.labels(self._cluster, "ok").inc()
        self.counters.drift_until.labels(self._cluster).set(rows[0].t)

    def publish_drift_failure(self, result: str) -> None:
        """Withdraws the rows published before, and counts a failed replay."""
        self._drift = None
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
        yield from _families(OF_CHANGES, {name: one.of_changes() for name, one in ledgers.items()})
        yield from _families(OF_CYCLE, {name: one.of_cycle() for name, one in ledgers.items()})
        yield from _families(OF_DRIFT, {name: one.of_drift() for name, one in ledgers.items()})

    def of_changes(self) -> Found:
        """Returns what changed lately, if anything did."""
        if not self._changes:
            return {}
        return {
            "change_timestamp_seconds": [
                ((change.kind, change.what[:LONGEST_CHANGE]), change.at) for change in self._changes
            ]
        }

    def of_drift(self) -> Found:
        """Returns what the last replay found, if it succeeded."""
        if self._drift is None:
            return {}
        rows, turns, seconds = self._drift
        return {
            "organization_drift_seconds": drifts_of(rows).items(),
            "unfairness_seconds": [((name,), sum_) for name, sum_ in unfairness_of(rows).items()],
            "contested_moments": [((name,), contested) for name, (contested, _) in turns.items()],
            "out_of_turn_moments": [((name,), out) for name, (_, out) in turns.items()],
            "organization_alone_gain_ratio": [
                ((name,), gain) for name, gain in alone_gains_of(rows).items()
            ],
            "drift_reference_info": [((rows[0].reference,), 1)],
            "drift_window_seconds": [((), rows[0].t - rows[0].begin)],
            "drift_duration_seconds": [((), seconds)],
        }

    def of_cycle(self) -> Found:
        """Returns what the last cycle found, if it succeeded."""
        last = self._last
        if last is None:
            return {}
        plan, ranked = last.plan, last.ranked
        rows = {row.organization: _values_of(row) for row in ranked.standings}
        found: Found = {
            "ledger_lag_seconds": [((), last.accounted.lag_seconds)],
            "postponed_writes": [((), plan.postponed)],
            "pause_seconds": [((), 0 if plan.pause is None else max(last.t - plan.pause.since, 0))],
            "jobs_put_first": [((), plan.first.jobs)],
            "jobs_of_unknown_accounts": [((), last.jobs.of_unknown_accounts)],
            "ranking_rule_info": [((ranked.rule,), 1)],
            "foreign_priorities": [
                (("accounts",), len(plan.foreign.targets)),
                (("jobs",), len(plan.foreign.jobs)),
                *(((kind,), len(plan.foreign.by_hand.get(kind, ()))) for kind in get_args(Kind)),
            ],
            "organization_oldest_pending_seconds": [
                ((one.organization, one.partition), last.t - one.since)
                for one in last.jobs.pending_jobs
            ],
            "completed_parts": [
                ((), parts) for parts in {row.all_parts for row in ranked.standings}
            ],
            "user_work_after_end_processor_seconds": [
                ((one.organization, one.user), one.processor_seconds)
                for one in last.users_after_end
            ],
            **{
                f"organization_{name}": [((who,), values[name]) for who, values in rows.items()]
                for name in BY_ORGANIZATION
            },
        }
        return {**found, **_of_unions(ranked.standings), **_of_pool(last)}


def _families(described: Described, found: Mapping[str, Found]) -> Iterator[Metric]:
    """Yields the metrics that some ledger has; ledger -> what was found of it."""
    for name, (documentation, labels) in described.items():
        if not any(name in of_ledger for of_ledger in found.values()):
            continue
        family = GaugeMetricFamily(
            f"shapleyprio_{name}", documentation, labels=["cluster", *labels]
        )
        for ledger, of_ledger in found.items():
            for key, value in of_ledger.get(name, ()):
                family.add_metric([ledger, *key], float(value))
        yield family


def _of_unions(standings: Sequence[StandingRow]) -> Found:
    """Returns who stands in which union; none where all stand alone."""
    members = Counted(row.head for row in standings)
    found = [((row.organization, row.head), 1) for row in standings if members[row.head] > 1]
    return {"organization_union_info": found} if found else {}


def _of_pool(report: CycleReport) -> Found:
    """Returns metrics of the other clusters in the pool; none for a cluster in no pool."""
    members = [part for part in report.ranked.pool if part.state is not PartState.LEFT]
    if not members:
        return {}
    return {
        "pool_age_seconds": [
            ((part.cluster,), report.t - part.t) for part in members if part.t is not None
        ],
        "pool_stale": [((part.cluster,), part.state is not PartState.CURRENT) for part in members],
    }


def _values_of(row: StandingRow) -> dict[str, float | Fraction]:
    """Returns metric of `BY_ORGANIZATION` -> its value."""
    return {
        "contribution_part_seconds": row.contribution,
        "utility_part_seconds": row.utility,
        "balance_per_part_seconds": row.balance_per_part or 0,
        "score": row.score,
        "priority_points": row.priority,
        "pending_jobs": row.pending,
        "running_jobs": row.running,
        "owned_processors": row.processors,
    }
