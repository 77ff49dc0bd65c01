"""One cycle of the daemon's life: observe Slurm, account, rank, push, publish."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from shapleyprio.config import Config
from shapleyprio.fairness.ledger import Course, Standing
from shapleyprio.fairness.ranking import leading, priorities, scale, turn
from shapleyprio.fairness.runs import UNFINISHED_STATES
from shapleyprio.fairness.tenure import Kind, Tenures
from shapleyprio.service import push
from shapleyprio.service.accounting import Account, AccountingError, ClockError
from shapleyprio.service.membership import Membership, membership
from shapleyprio.service.report import Report, StopWatch, standing_rows
from shapleyprio.service.rollback import plan_rollback
from shapleyprio.slurm.port import (
    Channel,
    Layout,
    Malformed,
    PendingJob,
    Slurm,
    SlurmError,
    SlurmUnavailableError,
)
from shapleyprio.slurm.priority import others_can_add
from shapleyprio.store import CycleRow, NewPush, Store, StoreError, Transaction

CATCH_UP_SECONDS = 86_400
"""At most this much of unread accounting goes into one transaction."""

LAYOUT_SECONDS = 600
"""Nodes, partitions, accounts and weights are read anew this often."""

DEFAULT_OPENING_SECONDS = 30 * 86_400
"""Where the horizon is unlimited and nothing else is said, the book opens this far back."""

FAILURES: dict[type[Exception], str] = {
    SlurmUnavailableError: "slurm_unavailable",
    SlurmError: "slurm_refused",
    StoreError: "store_failed",
    ClockError: "clock_backwards",
    AccountingError: "records_refused",
}
"""What can fail in a cycle -> the outcome it is recorded under; the first that fits counts."""

log = structlog.get_logger(__name__)


class Cycle:
    """Runs cycles on one cluster.

    Args:
        config: whose accounts and nodes are whose, and how to rank and push.
        slurm: the cluster.
        store: where everything is kept.
        cluster: name under which it is kept.
        clock: seconds since the epoch, for the record; what is accounted follows Slurm's clock.
    """

    def __init__(
        self,
        config: Config,
        slurm: Slurm,
        store: Store,
        cluster: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._slurm = slurm
        self._store = store
        self._cluster = cluster
        self._clock = clock
        self._channel = config.push.channel
        self._layout: Layout | None = None
        self._layout_read = 0

    def run(self, *, dry_run: bool = False) -> Report:
        """One cycle, recorded in the store whether it succeeds or fails.

        Args:
            dry_run: account and rank, but write nothing into Slurm.

        Raises:
            SlurmError: Slurm is away or refuses; nothing was lost, the next cycle goes on.
            StoreError: so for the store.
            AccountingError: the records or the clock are not as they must be.
        """
        started = int(self._clock())
        with self._store.reading(self._cluster) as view:
            report = Report(number=view.next_cycle())
        try:
            self._steer(report, dry_run=dry_run)
        except Exception as failure:
            self._record(report, started, outcome_of(failure), str(failure) or repr(failure))
            raise
        self._record(report, started, "dry_run" if dry_run else "ok")
        return report

    def _steer(self, report: Report, *, dry_run: bool) -> None:
        watch = StopWatch(report)
        push.settle_open(self._store, self._cluster, self._slurm)
        standings, courses, tenures = self._account(report)
        watch.lap("account")
        pending, running = self._observe_jobs(report)
        watch.lap("observe")
        points = self._rank(standings)
        report.planned = self._plan(report, pending, points, standings, tenures)
        report.standings = standing_rows(
            standings,
            points,
            cycle=report.number,
            t=report.t,
            pending=pending,
            running=running,
            nodes=self._known_layout.nodes.values(),
            tenures=tenures,
            tres=self._config.fairness.tres,
        )
        waiting = [row.organization for row in report.standings if row.pending]
        report.turn = turn(
            {name: courses[name] for name in waiting}, within=self._config.service.poll_interval
        )
        watch.lap("rank")
        if not dry_run:
            report.pushed = push.carry_out(self._store, self._cluster, self._slurm, report.planned)
        watch.lap("push")

    def submitted(self) -> int | None:
        """How many jobs Slurm counts as submitted; None where they have their priority from it.

        Raises:
            SlurmError: it cannot be asked.
        """
        if self._channel is Channel.QOS:
            return None
        return self._slurm.controller().submitted

    def prune(self) -> int:
        """Deletes what no value depends on any more; returns how many runs.

        Raises:
            SlurmError: it cannot be told which jobs are still there.
            StoreError: nothing was deleted.
        """
        controller = self._slurm.controller()
        now = controller.time
        told = self._slurm.pending()
        known = controller.accounting_backlog == 0 and not any(
            isinstance(job, Malformed) for job in told
        )
        waiting = push.live_keys(job for job in told if isinstance(job, PendingJob))
        with self._store.transaction(self._cluster) as transaction:
            for channel in (Channel.SITE_FACTOR, Channel.NICE) if known else ():
                self._prune_marks(transaction, channel, waiting)
            transaction.prune_history(
                now - self._config.service.keep_history,
                pushes_before=now - self._config.service.keep_pushes,
            )
            return self._open(transaction, now).prune(overlap=self._overlap)

    def _prune_marks(self, transaction: Transaction, channel: Channel, waiting: set[str]) -> None:
        """Forgets jobs that have ended; one that runs or is suspended may be requeued and wait."""
        live = waiting | {
            key
            for run in transaction.unfinished_runs()
            for key in (str(run.key.job_id), push.base_key(run.label, run.key.job_id))
        }
        missing = [int(key) for key in transaction.marks(channel).keys() - live]
        for record in self._slurm.records_of(missing) if missing else ():
            if isinstance(record, Malformed):
                return
            if record.state in UNFINISHED_STATES:
                live.add(str(record.job_id))
        transaction.prune_marks(channel, live)

    def _account(self, report: Report) -> tuple[dict[str, Standing], dict[str, Course], Tenures]:
        """Reads accounting up to now, a day at most in one transaction."""
        caught_up = False
        while not caught_up:
            before = self._slurm.controller()
            complete = before.accounting_backlog == 0
            with self._store.transaction(self._cluster) as transaction:
                account = self._open(transaction, before.time)
                account.check_clock(before.time)
                self._observe_holders(account, before.time)
                progress = account.progress
                until = before.time
                if complete:
                    until = min(until, progress.observed_until + CATCH_UP_SECONDS)
                caught_up = until == before.time
                since = max(progress.opened, progress.observed_until - self._overlap)
                account.take_in(self._slurm.records(since, until), before.time)
                if caught_up and (unmentioned := account.unmentioned()):
                    job_ids = sorted({key.job_id for key in unmentioned})
                    account.settle_unfinished(self._slurm.records_of(job_ids), before.time)
                report.t = account.close(
                    self._slurm.controller().time,
                    observed_until=until if complete else progress.observed_until,
                )
                report.tally += account.tally
                report.lag_seconds = max(0, report.t - account.progress.observed_until)
        names = [organization.name for organization in self._config.organizations]
        ledger = account.ledger
        return (
            ledger.standings(report.t, names),
            ledger.courses(report.t, names),
            account.tenures,
        )

    def _open(self, transaction: Transaction, now: int) -> Account:
        fairness = self._config.fairness
        opens = fairness.since
        if opens is None:
            opens = now - (fairness.horizon or DEFAULT_OPENING_SECONDS)
        return Account(
            transaction,
            horizon=fairness.horizon,
            opens=opens,
            ask_holders=lambda: _holders(self._membership(refresh=True, now=now)),
            weight=fairness.weight,
        )

    @property
    def _overlap(self) -> int:
        return self._config.service.overlap

    @property
    def _known_layout(self) -> Layout:
        assert self._layout is not None, "the layout is read before records are accounted"
        return self._layout

    def _observe_holders(self, account: Account, now: int) -> None:
        due = now - self._layout_read >= LAYOUT_SECONDS
        for kind, holders in _holders(self._membership(refresh=due, now=now)).items():
            if moved := account.observe_holders(kind, holders, now):
                log.info("holders changed", kind=kind, moved=moved)

    def _membership(self, *, refresh: bool, now: int) -> Membership:
        if refresh or self._layout is None:
            self._layout = self._slurm.layout()
            self._layout_read = now
        return membership(self._config.organizations, self._layout)

    def _observe_jobs(self, report: Report) -> tuple[list[PendingJob], dict[str, int]]:
        told = self._slurm.pending()
        malformed = [job for job in told if isinstance(job, Malformed)]
        report.tally.refused += len(malformed)
        with self._store.transaction(self._cluster) as transaction:
            transaction.keep_aside(malformed, report.t)
            running = transaction.running_by_organization()
        return [job for job in told if isinstance(job, PendingJob)], running

    def _rank(self, standings: Mapping[str, Standing]) -> dict[str, int]:
        others = others_can_add(self._known_layout, self._channel)
        balances = {name: standing.balance for name, standing in standings.items()}
        return priorities(balances, scale(len(balances), others, self._config.push.influence))

    def _plan(
        self,
        report: Report,
        pending: Sequence[PendingJob],
        points: Mapping[str, int],
        standings: Mapping[str, Standing],
        tenures: Tenures,
    ) -> list[NewPush]:
        if self._channel is Channel.QOS:
            owners = {one.qos: one.name for one in self._config.organizations if one.qos}
            places = push.qos_places(self._slurm.qos_priorities(), owners)
        else:
            accounts = {job.account for job in pending}
            holders = {name: tenures.holder("account", name, report.t) for name in accounts}
            places = push.job_places(self._channel, pending, holders)
        order = leading({name: standing.balance for name, standing in standings.items()})
        reasons = {
            name: f"place {place} of {len(order)}, balance {standings[name].balance}"
            for place, name in enumerate(order, start=1)
        }
        with self._store.reading(self._cluster) as view:
            marks = view.marks(self._channel)
        planned = push.plan(
            self._channel,
            places,
            points,
            marks,
            cycle=report.number,
            now=report.t,
            reasons=reasons,
        )
        left = [channel for channel in Channel if channel is not self._channel]
        return planned + plan_rollback(
            self._store, self._cluster, self._slurm, left, cycle=report.number, now=report.t
        )

    def _record(self, report: Report, started: int, outcome: str, message: str = "") -> None:
        row = CycleRow(
            number=report.number,
            started=started,
            finished=int(self._clock()),
            outcome=outcome,
            t=report.t,
            seen=report.tally.seen,
            kept=report.tally.kept,
            refused=report.tally.refused + report.pushed.refused,
            written=report.pushed.applied,
            message=message,
            seconds=report.seconds,
        )
        try:
            with self._store.transaction(self._cluster) as transaction:
                transaction.save_cycle(row)
                if not message:
                    transaction.save_standings(report.standings)
        except StoreError:
            if not message:
                raise
            log.warning("the failed cycle could not be recorded", outcome=outcome)


def outcome_of(failure: Exception) -> str:
    """The outcome that a failure is recorded under: ``defect`` if it was not foreseen."""
    return next((name for kind, name in FAILURES.items() if isinstance(failure, kind)), "defect")


def _holders(members: Membership) -> dict[Kind, Mapping[str, str]]:
    return {"account": members.accounts, "node": members.nodes}
