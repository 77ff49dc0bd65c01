"""What the phases of a cycle found and did, how it can end, and what the store keeps of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

import structlog

from shapleyprio.daemon.accounting.cluster_clock import AccountingError, ClockError
from shapleyprio.daemon.accounting.tally import AccountedSoFar, Tally
from shapleyprio.daemon.pushing.lease import LeaseHeldError
from shapleyprio.daemon.pushing.planning import Plan
from shapleyprio.daemon.pushing.push import PushCounts
from shapleyprio.daemon.ranking.observing import JobsFound
from shapleyprio.daemon.ranking.ranking import Ranked
from shapleyprio.slurm.port import (
    AdapterInUse,
    SlurmError,
    SlurmRefusedError,
    SlurmUnavailableError,
)
from shapleyprio.store import (
    ClusterStore,
    CycleRow,
    SteeringRow,
    StoreError,
    Transaction,
    UserAfterEnd,
)


class UnenforcedAccountsError(SlurmRefusedError):
    """Any user may write what priorities are computed from, so none are written."""


FAILURES: dict[type[Exception], str] = {
    UnenforcedAccountsError: "accounts_not_enforced",
    SlurmUnavailableError: "slurm_unavailable",
    SlurmError: "slurm_refused",
    LeaseHeldError: "lease_lost",
    StoreError: "store_failed",
    ClockError: "clock_backwards",
    AccountingError: "records_refused",
}
"""What can fail in a cycle -> the outcome it is recorded under; the first that fits counts."""

STEERED = "ok"
"""The outcome of a cycle that succeeded."""

NOT_ENFORCED = (
    "AccountingStorageEnforce lacks associations, so any user can submit jobs to any account; set "
    "AccountingStorageEnforce=associations in slurm.conf and restart slurmctld, or allow it by "
    "slurm.allow_unenforced_accounts = true"
)


def outcome_of(failure: Exception) -> str:
    """Names the outcome that a failure is recorded under: ``defect`` if it was not foreseen."""
    return next((name for kind, name in FAILURES.items() if isinstance(failure, kind)), "defect")


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleReport:
    """The results of a cycle's phases, as far as it has come.

    Attributes:
        number: of the cycle.
        t: second at which the ledger stands.
        accounted: what became of the accounting records.
        after_end: organization -> processor-seconds that its runs are found to have gone on after
            their ends.
        users_after_end: users whose runs continued most after an end in the last day.
        slurm_version: the release of Slurm.
        adapter: through which Slurm was spoken to.
        jobs: what was found out about the jobs that wait and those that have started.
        ranked: the organizations.
        plan: what was to be written.
        keeps_table: whether there is to be a table of points.
        table_written: second of the table of points that it wrote; None if it wrote none.
        pushed: what became of the planned writes.
        touched: how many pending jobs were touched so that they follow.
        seconds: phase -> how long it took.
        conflicts: how often a transaction was repeated, for the database had undone it.
    """

    number: int
    t: int = 0
    accounted: AccountedSoFar = field(default_factory=AccountedSoFar)
    after_end: Mapping[str, int] = field(default_factory=dict)
    users_after_end: Sequence[UserAfterEnd] = ()
    slurm_version: str = ""
    adapter: AdapterInUse | None = None
    jobs: JobsFound = field(default_factory=JobsFound)
    ranked: Ranked = field(default_factory=Ranked)
    plan: Plan = field(default_factory=Plan)
    keeps_table: bool = False
    table_written: int | None = None
    pushed: PushCounts = field(default_factory=PushCounts)
    touched: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    conflicts: int = 0

    @property
    def tally(self) -> Tally:
        """What became of all lines that were read."""
        return self.accounted.tally + Tally(quarantined=self.jobs.quarantined)

    @property
    def seconds_until_reorder(self) -> int | None:
        """Seconds from t until the order changes; None if not soon, or while nothing is steered."""
        return self.ranked.seconds_until_reorder if self.plan.pause is None else None

    def row(self, *, started: int, finished: int, outcome: str, message: str) -> CycleRow:
        """Returns what the store keeps of it.

        Args:
            started: second at which it began.
            finished: second at which it ended.
            outcome: of the cycle.
            message: why it failed; empty if it did not.
        """
        tally, by_hand = self.tally, self.plan.foreign.by_hand
        return CycleRow(
            number=self.number,
            started=started,
            finished=finished,
            outcome=outcome,
            t=self.t,
            seen=tally.seen,
            kept=tally.kept,
            quarantined=tally.quarantined,
            refused=self.pushed.refused,
            written=self.pushed.applied,
            message=message,
            seconds=self.seconds,
            slurm_version=self.slurm_version,
            adapter=self.adapter.name if self.adapter else "",
            rule=self.ranked.rule,
            estimated_at=self.ranked.estimated_at,
            missed=self.plan.missed,
            postponed=self.plan.postponed,
            of_unknown_accounts=self.jobs.of_unknown_accounts,
            by_hand={kind: len(labels) for kind, labels in by_hand.items()},
        )


class StopWatch:
    """Measures how long the phases of a cycle take."""

    def __init__(self) -> None:
        self._last = monotonic()

    def lap(self, report: CycleReport, phase: str) -> CycleReport:
        """Ends the phase and begins the next; returns the report with how long it took."""
        now = monotonic()
        seconds, self._last = now - self._last, now
        return replace(report, seconds={**report.seconds, phase: seconds})


log = structlog.get_logger(__name__)


def record(
    store: ClusterStore, report: CycleReport, row: CycleRow, *, rule: str, channel: str
) -> None:
    """Stores a cycle that has ended.

    Args:
        store: of the ledger.
        report: as far as the cycle has come.
        row: how it ended.
        rule: that was to rank.
        channel: that carries the priorities.

    Raises:
        StoreError: a cycle that did not fail could not be stored.
    """

    def save(transaction: Transaction) -> None:
        transaction.history.save_cycle(row)
        if not row.message:
            transaction.history.save_standings(report.ranked.standings)
            transaction.observed.save_pending_jobs(report.jobs.pending_jobs)
        if row.outcome == STEERED:
            transaction.history.note_steering(_steering(report, rule, channel))

    try:
        store.transact(save)
    except StoreError:
        if not row.message:
            raise
        log.warning("the failed cycle could not be recorded", outcome=row.outcome)


def _steering(report: CycleReport, rule: str, channel: str) -> SteeringRow:
    if (pause := report.plan.pause) is not None:  # which may be younger than what is accounted
        return SteeringRow(since=max(report.t, pause.since), rule="", chosen="", channel="")
    return SteeringRow(since=report.t, rule=report.ranked.rule, chosen=rule, channel=channel)
