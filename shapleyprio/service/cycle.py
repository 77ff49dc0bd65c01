"""One cycle of the daemon's life: settle, account, observe, rank, push, record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from shapleyprio.config import Config
from shapleyprio.config.membership import Membership, claims_of, configured_membership
from shapleyprio.estimation.live import LiveEstimates
from shapleyprio.fairness.rule import Contributions, Ranking
from shapleyprio.fairness.rules import RULES
from shapleyprio.fairness.runs import UNFINISHED_STATES, RunKey
from shapleyprio.fairness.scale import scale
from shapleyprio.fairness.tenure import Tenures
from shapleyprio.service import push, submission
from shapleyprio.service.accounting import AccountingError, ClockError, OpenLedger
from shapleyprio.service.after_end import count_work_after_end
from shapleyprio.service.capacities import note_capacities
from shapleyprio.service.following import Followers, Foreign, values_after
from shapleyprio.service.moves import holds_nothing, sentences
from shapleyprio.service.ownership import holders_in
from shapleyprio.service.push import Stamp, Wanted
from shapleyprio.service.report import (
    CycleReport,
    Observation,
    Opening,
    StopWatch,
    explanations,
    standing_rows,
)
from shapleyprio.service.rollback import plan_rollback
from shapleyprio.service.urgency import Limits, most_urgent
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import (
    Layout,
    Malformed,
    PendingJob,
    Slurm,
    SlurmError,
    SlurmRefusedError,
    SlurmUnavailableError,
)
from shapleyprio.slurm.priority import others_can_add
from shapleyprio.store import ClusterStore, CycleRow, StoreError, Transaction
from shapleyprio.wording import listed, names_shown

CATCH_UP_SECONDS = 86_400
"""At most this much of unread accounting goes into one transaction."""

MOST_COUNTED = 100
"""In one cycle Slurm is asked for at most so many runs how many processors they hold where."""

LAYOUT_SECONDS = 600
"""Nodes, partitions, accounts and weights are read anew this often."""

DEFAULT_OPENING_SECONDS = 30 * 86_400
"""Where the horizon is unlimited and nothing else is said, the ledger opens this far back."""


class UnenforcedAccountsError(SlurmRefusedError):
    """Any user may write what priorities are computed from, so none are written."""


FAILURES: dict[type[Exception], str] = {
    UnenforcedAccountsError: "accounts_not_enforced",
    SlurmUnavailableError: "slurm_unavailable",
    SlurmError: "slurm_refused",
    StoreError: "store_failed",
    ClockError: "clock_backwards",
    AccountingError: "records_refused",
}
"""What can fail in a cycle -> the outcome it is recorded under; the first that fits counts."""

NOT_ENFORCED = (
    "AccountingStorageEnforce lacks associations, so any user can submit jobs to any account; set "
    "AccountingStorageEnforce=associations in slurm.conf and restart slurmctld, or allow it by "
    "slurm.allow_unenforced_accounts = true"
)

log = structlog.get_logger(__name__)


class Cycle:
    """Runs cycles on one cluster.

    Args:
        config: whose accounts and nodes are whose, and how to rank and push.
        slurm: the cluster.
        store: of the cluster, where everything is kept.
        clock: seconds since the epoch, for the record; what is accounted follows Slurm's clock.
        on_opening: called when the store has got a ledger that it did not have before.
        estimates: of contributions, for a rule that asks for them; None for none.
    """

    def __init__(
        self,
        config: Config,
        slurm: Slurm,
        store: ClusterStore,
        clock: Callable[[], float] = time.time,
        on_opening: Callable[[Opening], None] = lambda _: None,
        estimates: LiveEstimates | None = None,
    ) -> None:
        self._config = config
        self._slurm = slurm
        self._store = store
        self._clock = clock
        self._on_opening = on_opening
        self._estimates = estimates
        self._channel = CHANNELS[config.push.channel]
        self._table = submission.TableKeeper(
            config.push.table, submission.lasting(config.service.poll_interval), store
        )
        self._limits = Limits(
            writes=config.push.most_writes, raises_of_user=config.push.most_raises_of_user
        )
        self._rule = RULES[config.fairness.rule]()
        self._layout: Layout | None = None
        self._layout_read = 0
        self._sizes: Mapping[str, int] = {}
        self._asked_to_count: set[RunKey] = set()
        self._followers = Followers()
        self._foreign = Foreign()
        self._without_any: list[str] = []
        self._unknown_accounts: frozenset[str] = frozenset()

    def run(self, *, dry_run: bool = False) -> CycleReport:
        """Runs one cycle, recorded in the store whether it succeeds or fails.

        Args:
            dry_run: account and rank, but write nothing into Slurm; the store is to be a copy.

        Raises:
            SlurmError: Slurm is away or refuses; nothing was lost, the next cycle goes on.
            StoreError: so for the store.
            AccountingError: the records or the clock are not as they must be.
        """
        started = int(self._clock())
        with self._store.reading() as view:
            report = CycleReport(number=view.next_cycle())
        try:
            self._steer(report, dry_run=dry_run)
        except Exception as failure:
            self._record(report, started, outcome_of(failure), str(failure) or repr(failure))
            raise
        self._record(report, started, "dry_run" if dry_run else "ok")
        return report

    def _steer(self, report: CycleReport, *, dry_run: bool) -> None:
        watch = StopWatch(report)
        push.settle_open(self._store, self._slurm)
        opened = self._account(report)
        names = [organization.name for organization in self._config.organizations]
        standings = opened.ledger.standings(report.t, names)
        if not dry_run:
            report.after_end = count_work_after_end(
                self._store,
                self._slurm,
                opened.tenures,
                t=opened.watermark.observed_until,
                kill_wait=self._known_layout.kill_wait_seconds,
            )
        watch.lap("account")
        report.slurm_version = self._known_layout.version
        report.adapter = self._slurm.adapter()
        self._check_enforcement(dry_run=dry_run)
        observation = self._observe(report, opened)
        watch.lap("observe")
        ranking = self._rule.rank(opened.ledger, report.t, names, self._contributions(observation))
        report.rule, report.estimated_at = ranking.rule, ranking.estimated_at
        points = self._points(ranking)
        all_parts = opened.ledger.completed(report.t)
        report.standings = standing_rows(
            report.number, standings, ranking, points, observation, all_parts
        )
        wanted = Wanted(points=points, reasons=explanations(report.standings, ranking))
        self._plan(report, observation, wanted)
        waiting = {row.organization for row in report.standings if row.pending}
        report.seconds_until_reorder = ranking.seconds_until_reorder(
            waiting, within=self._config.service.poll_interval
        )
        watch.lap("rank")
        if not dry_run:
            self._push(report, opened.tenures, points)
        watch.lap("push")

    def activity(self) -> tuple[int, int] | None:
        """Reads how many jobs were submitted, and how often others have changed any.

        Returns:
            two numbers that stay as they are while nothing happens; None where Slurm itself gives
            jobs the priority of their account or QOS.

        Raises:
            SlurmError: it cannot be asked.
        """
        if not self._channel.per_job:
            return None
        controller = self._slurm.controller()
        return controller.submitted, controller.changed

    def prune(self) -> int:
        """Deletes what no value depends on any more; returns how many runs.

        Raises:
            SlurmError: it is unknown which jobs are still there.
            StoreError: nothing was deleted.
        """
        controller = self._slurm.controller()
        now = controller.time
        queue = self._slurm.pending()
        known = controller.accounting_backlog == 0 and not queue.malformed
        waiting = push.live_keys(queue.jobs)
        with self._store.transaction() as transaction:
            for channel in CHANNELS.values():
                if known and channel.per_job:
                    self._prune_managed_values(transaction, channel.name, waiting)
            if known:
                submission.forget(transaction, queue.jobs)
            transaction.prune_history(
                now - self._config.service.keep_history,
                pushes_before=now - self._config.service.keep_pushes,
            )
            return self._open(transaction, now).prune(
                overlap=max(self._overlap, self._config.service.keep_runs)
            )

    def _prune_managed_values(
        self, transaction: Transaction, channel: str, waiting: set[str]
    ) -> None:
        """Forgets jobs that have ended; one that runs or is suspended may be requeued and wait."""
        live = waiting | {
            key
            for run in transaction.unfinished_runs()
            for key in (str(run.key.job_id), str(run.array_job_id))
        }
        missing = [int(key) for key in transaction.managed_values(channel).keys() - live]
        for record in self._slurm.records_of(missing) if missing else ():
            if isinstance(record, Malformed):
                return
            if record.state in UNFINISHED_STATES:
                live.add(str(record.job_id))
        transaction.prune_managed_values(channel, live)

    def _account(self, report: CycleReport) -> OpenLedger:
        """Reads accounting up to now, a day at most in one transaction."""
        while True:
            before = self._slurm.controller()
            complete = before.accounting_backlog == 0
            with self._store.transaction() as transaction:
                opened = self._open(transaction, before.time)
                opened.check_clock(before.time)
                self._observe_holders(opened, before.time)
                watermark = opened.watermark
                until = before.time
                if complete:
                    until = min(until, watermark.observed_until + CATCH_UP_SECONDS)
                caught_up = until == before.time
                since = max(watermark.opened, watermark.observed_until - self._overlap)
                opened.ingest(self._slurm.records(since, until), before.time)
                if caught_up and (unmentioned := opened.unmentioned()):
                    job_ids = sorted({key.job_id for key in unmentioned})
                    opened.settle_unfinished(self._slurm.records_of(job_ids), before.time)
                if caught_up:
                    self._count_processors(opened)
                report.t = opened.close(
                    self._slurm.controller().time,
                    observed_until=until if complete else watermark.observed_until,
                )
                report.tally += opened.tally
                report.lag_seconds = max(0, report.t - opened.watermark.observed_until)
            self._log_holders(opened)
            if opened.is_new:
                self._on_opening(Opening.of(opened.watermark.opened, opened.tenures))
            if caught_up:
                return opened

    def _count_processors(self, opened: OpenLedger) -> None:
        """Asks Slurm once for each run that it concerns how many processors it holds where."""
        uncounted = opened.uncounted()
        asked = [run for run in uncounted if run.key not in self._asked_to_count][:MOST_COUNTED]
        if asked:
            opened.count(self._slurm.processors_of(asked))
        self._asked_to_count.update(run.key for run in asked)
        self._asked_to_count.intersection_update(run.key for run in uncounted)

    def _open(self, transaction: Transaction, now: int) -> OpenLedger:
        fairness = self._config.fairness
        opens = fairness.since
        if opens is None:
            opens = now - (fairness.horizon or DEFAULT_OPENING_SECONDS)
        return OpenLedger(
            transaction,
            horizon=fairness.horizon,
            opens=opens,
            ask_holders=lambda: holders_in(self._membership(refresh=True, now=now)),
            weight=fairness.weight,
            sizes=lambda: self._sizes,
        )

    @property
    def _overlap(self) -> int:
        return self._config.service.overlap

    @property
    def _known_layout(self) -> Layout:
        assert self._layout is not None, "the layout is read before records are accounted"
        return self._layout

    def _check_enforcement(self, *, dry_run: bool) -> None:
        """Prevents writes into Slurm where users decide what they are computed from.

        What is accounted stays, for it is no worse than what Slurm itself keeps.
        """
        if self._known_layout.enforces_accounts or self._config.slurm.allow_unenforced_accounts:
            return
        if not dry_run:
            raise UnenforcedAccountsError(f"nothing is written into Slurm: {NOT_ENFORCED}")
        log.warning("without --dry-run nothing would be written into Slurm", why=NOT_ENFORCED)

    def _observe_holders(self, opened: OpenLedger, now: int) -> None:
        due = now - self._layout_read >= LAYOUT_SECONDS
        for kind, holders in holders_in(self._membership(refresh=due, now=now)).items():
            opened.observe_holders(kind, holders, now)

    def _log_holders(self, opened: OpenLedger) -> None:
        """Logs what has changed hands, and once for whom nothing can count."""
        for sentence in sentences(opened.moves):
            log.info("changed hands", what=sentence)
        names = [organization.name for organization in self._config.organizations]
        without_any = opened.tenures.without_any(names)
        for name in without_any if without_any != self._without_any else ():
            log.warning(holds_nothing(name))
        self._without_any = without_any

    def _membership(self, *, refresh: bool, now: int) -> Membership:
        if refresh or self._layout is None:
            self._layout = self._slurm.layout()
            self._layout_read = now
            tres = self._config.fairness.tres
            self._sizes = {
                name: node.tres.get(tres, 0) for name, node in self._layout.nodes.items()
            }
        return configured_membership(self._config, self._layout)

    def _observe(self, report: CycleReport, opened: OpenLedger) -> Observation:
        queue = self._slurm.pending()
        nodes = self._slurm.nodes()
        if nodes.keys() != self._known_layout.nodes.keys():
            self._layout_read = 0  # the next cycle finds out whose the new ones are
        self._count_unknown_accounts(report, queue.jobs)
        report.tally.quarantined += len(queue.malformed) + queue.more_malformed
        with self._store.transaction() as transaction:
            transaction.quarantine(queue.malformed, report.t, more=queue.more_malformed)
            observation = Observation(
                pending=queue.jobs,
                running=transaction.running_by_organization(),
                nodes=nodes.values(),
                tres=self._config.fairness.tres,
                tenures=opened.tenures,
                t=report.t,
            )
            names = [item.name for item in self._config.organizations]
            note_capacities(transaction, observation, names, opened.watermark.opened)
        return observation

    def _count_unknown_accounts(self, report: CycleReport, pending: Sequence[PendingJob]) -> None:
        """Counts jobs of accounts that are nobody's, for accounting does not know them.

        One that has just been added is known in the next cycle.
        """
        found = self._known_layout.of_unknown_accounts(pending)
        report.of_unknown_accounts = sum(found.values())
        if found.keys() - self._unknown_accounts:
            self._layout_read = 0
        if found and found.keys() != self._unknown_accounts:
            log.warning(
                "waiting jobs of accounts that Slurm's accounting does not know are nobody's",
                jobs=report.of_unknown_accounts,
                accounts=names_shown(found),
            )
        self._unknown_accounts = frozenset(found)

    def _contributions(self, observation: Observation) -> Contributions | None:
        if self._estimates is None or not self._rule.estimates:
            return None
        return self._estimates.contributions(
            self._config, observation.startable_jobs(), observation.t
        )

    def _points(self, ranking: Ranking) -> dict[str, int]:
        others = others_can_add(self._known_layout, self._channel.factor)
        order = ranking.order
        return scale(len(order), others, self._config.push.influence).points_of(order)

    def _plan(self, report: CycleReport, observation: Observation, wanted: Wanted) -> None:
        stamp = Stamp(report.number, report.t)
        channel = self._channel
        holders = observation.holders(*self._known_layout.accounts)
        claims = claims_of(self._config.organizations, holders, observation.left_out)
        targets = channel.targets(self._slurm, observation.pending, claims)
        with self._store.reading() as view:
            managed = view.managed_values(channel.name)
            published = view.published_points()
        given = submission.given_on(channel, published)
        new = submission.first_seen(targets, managed)
        report.at_submission = submission.found_at(new, given, stamp)
        foreign = push.foreign(channel, targets, managed)
        ours = [target for target in targets if target not in foreign]
        least = channel.least_asked(lambda: self._known_layout.settings)
        needed = push.plan(channel, ours, managed, wanted, stamp, given, least)
        others = [other for other in CHANNELS.values() if other is not channel]
        needed += plan_rollback(self._store, self._slurm, others, stamp)
        report.planned = most_urgent(needed, observation.pending, self._limits)
        report.postponed = len(needed) - len(report.planned)
        made = [item for item in report.planned if item.channel == channel.name]
        keys = {item.key for item in made}  # a job that is postponed is seen anew next time
        first = [one for one in new if one.key in keys]
        report.missed = submission.count_missed(first, observation.pending, published, wanted)
        strays = self._followers.await_values(
            channel, observation.pending, values_after(ours, made, wanted), managed
        )
        report.foreign = Foreign(
            tuple(target.key for target in foreign), tuple(job.label for job in strays)
        )
        self._log_foreign(report.foreign)

    def _log_foreign(self, foreign: Foreign) -> None:
        """Logs what others have set, when it is not what they had in the cycle before."""
        if foreign == self._foreign:
            return
        self._foreign = foreign
        if foreign == Foreign():
            log.info("nobody else sets priorities any more", channel=self._channel.name)
            return
        log.warning(
            "somebody else has set priorities; they are left as they are",
            channel=self._channel.name,
            targets=listed(foreign.targets),
            jobs=listed(foreign.jobs),
        )

    def _push(self, report: CycleReport, tenures: Tenures, points: Mapping[str, int]) -> None:
        """Writes the table of points first: what is submitted meanwhile goes by the new order."""
        holders = {
            account: tenures.holder("account", account, report.t)
            for account in self._known_layout.accounts
        }
        by_account = {name: points[held] for name, held in holders.items() if held in points}
        if self._table.keep(by_account, report.t, self._slurm_time):
            report.table_written = report.t
        submission.note_found(self._store, report.at_submission)
        report.pushed = push.carry_out(self._store, self._slurm, report.planned)
        if self._config.push.touch and not report.pushed.refused + report.pushed.unconfirmed:
            report.touched = self._followers.touch(self._slurm)
        self._table.end(self._slurm_time)

    def _slurm_time(self) -> int:
        return self._slurm.controller().time

    def _record(self, report: CycleReport, started: int, outcome: str, message: str = "") -> None:
        row = CycleRow(
            number=report.number,
            started=started,
            finished=int(self._clock()),
            outcome=outcome,
            t=report.t,
            seen=report.tally.seen,
            kept=report.tally.kept,
            quarantined=report.tally.quarantined,
            refused=report.pushed.refused,
            written=report.pushed.applied,
            message=message,
            seconds=report.seconds,
            slurm_version=report.slurm_version,
            adapter=report.adapter.name if report.adapter else "",
            rule=report.rule,
            estimated_at=report.estimated_at,
            missed=report.missed,
            postponed=report.postponed,
            of_unknown_accounts=report.of_unknown_accounts,
        )
        try:
            with self._store.transaction() as transaction:
                transaction.save_cycle(row)
                if not message:
                    transaction.save_standings(report.standings)
        except StoreError:
            if not message:
                raise
            log.warning("the failed cycle could not be recorded", outcome=outcome)


def outcome_of(failure: Exception) -> str:
    """Names the outcome that a failure is recorded under: ``defect`` if it was not foreseen."""
    return next((name for kind, name in FAILURES.items() if isinstance(failure, kind)), "defect")
