"""One cycle of the daemon's life: settle, account, observe, rank, push, record."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from shapleyprio.common.wording import listed, names_shown
from shapleyprio.config import Config
from shapleyprio.config.membership import claims_of
from shapleyprio.config.segments import segment_of
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.after_end import count_work_after_end, most_after_end
from shapleyprio.daemon.accounting.cluster_clock import AccountingError, ClockError
from shapleyprio.daemon.accounting.intake import Intake
from shapleyprio.daemon.accounting.remembered import KnownValues
from shapleyprio.daemon.cycle_report import CycleReport, Opening, StopWatch
from shapleyprio.daemon.estimation.live import LiveEstimates
from shapleyprio.daemon.forecasting.live import LiveForecasts
from shapleyprio.daemon.pushing import push, submission
from shapleyprio.daemon.pushing.by_hand import SITE_FACTOR, set_by_hand
from shapleyprio.daemon.pushing.cut_off import CutOff, LastKnown
from shapleyprio.daemon.pushing.following import Followers, Foreign, values_after
from shapleyprio.daemon.pushing.going_first import (
    FirstJobs,
    LastingExceptions,
    SiteFactors,
    note_passed,
)
from shapleyprio.daemon.pushing.lease import LeaseHeldError
from shapleyprio.daemon.pushing.push import Stamp, Wanted
from shapleyprio.daemon.pushing.rollback import plan_rollback
from shapleyprio.daemon.pushing.settled import PlanBasis, SettledJobs
from shapleyprio.daemon.pushing.urgency import Limits, most_urgent
from shapleyprio.daemon.ranking.competing import competition
from shapleyprio.daemon.ranking.demand import Demand, Rooms, Scene
from shapleyprio.daemon.ranking.observation import Observation, note_capacities, note_layout
from shapleyprio.daemon.ranking.pooling import Pooling
from shapleyprio.daemon.ranking.standings import explanations, standing_rows
from shapleyprio.daemon.ranking.waits import pending_jobs_of, waits_of
from shapleyprio.daemon.steering.collecting import collecting_afterwards
from shapleyprio.fairness.pool import Stay
from shapleyprio.fairness.rule import Ranking
from shapleyprio.fairness.rules import RULES
from shapleyprio.fairness.runs import UNFINISHED_STATES
from shapleyprio.fairness.scale import scale
from shapleyprio.fairness.situation import Contributions
from shapleyprio.fairness.tenure import Tenures
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
from shapleyprio.slurm.shared_reading import SharedReading, Source
from shapleyprio.store import (
    ClusterStore,
    CycleRow,
    Journal,
    PauseRow,
    SteeringRow,
    StoreError,
    Transaction,
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

log = structlog.get_logger(__name__)


class Cycle:
    """Runs cycles on one cluster, or on what a pool has of it.

    Args:
        config: who owns accounts and nodes, and how to rank and push.
        slurm: the cluster.
        store: of the cluster or of one of its ledgers, where everything is kept.
        clock: seconds since the epoch, for the record; what is accounted follows Slurm's clock.
        on_opening: called when the store has got a ledger that it did not have before.
        estimates: of contributions, for a rule that asks for them; None for none.
        forecasts: of when jobs will start; None for none.
        journal: with which to go on while the store is away; None to wait for it.

    Attributes:
        ledger: its name.
    """

    def __init__(
        self,
        config: Config,
        slurm: Slurm,
        store: ClusterStore,
        clock: Callable[[], float] = time.time,
        on_opening: Callable[[Opening], None] = lambda _: None,
        estimates: LiveEstimates | None = None,
        journal: Journal | None = None,
        forecasts: LiveForecasts | None = None,
    ) -> None:
        self._config = config
        self._slurm = slurm
        self._store = store
        self._clock = clock
        self.ledger = store.cluster
        self._segment = segment_of(config, store.cluster)
        self._intake = Intake(config, slurm, store, on_opening, self._segment)
        self._estimates = estimates
        self._forecasts = forecasts
        self._channel = CHANNELS[config.push.channel]
        self._table = submission.TableKeeper(
            config.push.table, submission.lasting(config.service.poll_interval), store
        )
        self._no_table = submission.TableKeeper(None, 0, store)
        self._limits = Limits(
            writes=config.push.most_writes, raises_of_user=config.push.most_raises_of_user
        )
        self._pooling = Pooling(store)
        self._rule = RULES[config.fairness.rule]
        self._followers = Followers()
        self._foreign = Foreign()
        self._exceptions = LastingExceptions(store)
        self._pause: PauseRow | None = None
        self._unknown_accounts: frozenset[str] = frozenset()
        self._next: int | None = None
        self._managed = KnownValues(self._channel.name)
        self._settled = SettledJobs()
        self._demand = Demand()
        self._noted: Layout | None = None
        self._cut_off = (
            CutOff(self._channel, slurm, self._segment, self._limits, journal)
            if journal is not None and self._channel.per_job
            else None
        )

    def continue_from(self, before: Cycle) -> None:
        """Goes on after cycles of an earlier configuration: what they have logged is no news."""
        self._exceptions, self._foreign = before._exceptions, before._foreign
        self._pause = before._pause

    def share(self) -> SharedReading:
        """Begins to read the cluster, for this cycle and those of the cluster's other ledgers."""
        return SharedReading(self._slurm)

    def run(self, *, dry_run: bool = False, source: Source | None = None) -> CycleReport:
        """Runs one cycle, recorded in the store whether it succeeds or fails.

        Args:
            source: what is shared with the cycles of the cluster's other ledgers; None for nothing.
            dry_run: account and rank, but write nothing into Slurm; the store is to be a copy.

        Raises:
            SlurmError: Slurm is away or refuses; nothing was lost, the next cycle goes on.
            StoreError: so for the store.
            AccountingError: the records or the clock are not as they must be.
            LeaseHeldError: another process steers the cluster; it goes on.
        """
        started = int(self._clock())
        conflicts = self._store.conflicts
        with self._store.reading() as view:
            report = CycleReport(number=view.next_cycle())
        if report.number != self._next:  # what another cycle did is not what we remember
            self._intake.forget()
        if dry_run or report.number != self._next:
            self._managed.forget()
        self._next = report.number + 1
        try:
            with collecting_afterwards():
                self._steer(report, source or self._slurm, dry_run=dry_run)
        except LeaseHeldError:  # it is for another process to write down what happens
            raise
        except Exception as failure:
            self._managed.forget()
            self._record(report, started, outcome_of(failure), str(failure) or repr(failure))
            raise
        self._record(report, started, "dry_run" if dry_run else STEERED)
        report.conflicts = self._store.conflicts - conflicts
        return report

    def go_on(self, source: Source | None = None) -> int:
        """Gives new jobs the last known points, while the store is away.

        Args:
            source: as for `run`.

        Returns:
            how many were written; none without a journal.

        Raises:
            SlurmError: Slurm is away or refuses.
            StoreError: the journal cannot be written.
        """
        return 0 if self._cut_off is None else self._cut_off.steer(source or self._slurm)

    def _steer(self, report: CycleReport, source: Source, *, dry_run: bool) -> None:
        watch = StopWatch(report)
        if self._cut_off is not None:
            self._cut_off.hand_over(self._store)
        push.settle_open(self._store, self._slurm)
        try:
            opened = self._intake.account(report, source)
        except ClockError as error:
            if dry_run:
                raise
            raise self._steer_by_last(report, source, error) from error
        names = [organization.name for organization in self._config.organizations]
        standings = opened.ledger.standings(report.t, names)
        if not dry_run:
            report.after_end = count_work_after_end(
                self._store,
                self._slurm,
                opened.tenures,
                t=opened.watermark.observed_until,
                kill_wait=self._intake.layout.kill_wait_seconds,
            )
            report.users_after_end = most_after_end(self._store, t=report.t)
        watch.lap("account")
        report.slurm_version = self._intake.layout.version
        report.adapter = self._slurm.adapter()
        self._check_enforcement(dry_run=dry_run)
        observation = self._observe(report, opened, source)
        report.waits = waits_of(report.started, opened.tenures)
        report.pending_jobs = pending_jobs_of(observation, self._demand.counting)
        watch.lap("observe")
        situation = observation.situation(
            names,
            opened.ledger,
            self._demand.counting,
            self._contributions(observation, opened.stay),
        )
        ranking, report.pool = self._pooling.rank(self._rule, situation, opened)
        report.rule, report.estimated_at = ranking.rule, ranking.estimated_at
        points = self._points(ranking)
        all_parts = opened.ledger.completed(report.t)
        report.standings = standing_rows(
            report.number, standings, ranking, points, observation, all_parts
        )
        wanted = Wanted(points=points, reasons=explanations(report.standings, ranking))
        self._plan_unless_paused(report, source, observation, wanted)
        waiting = {row.organization for row in report.standings if row.pending}
        if report.pause is None:
            report.seconds_until_reorder = ranking.seconds_until_reorder(
                waiting, within=self._config.service.poll_interval
            )
        watch.lap("rank")
        if not dry_run:
            self._push(report, opened.tenures, points)
        watch.lap("push")
        if self._forecasts is not None and report.pause is None and not dry_run:
            self._forecasts.follow(
                self._config,
                lambda: competition(
                    observation,
                    situation,
                    ranking,
                    self._demand.counting,
                    self._config.service.overlap,
                ),
                report.started,
                changed=report.tally.kept > 0,
            )

    def _steer_by_last(self, report: CycleReport, source: Source, error: ClockError) -> ClockError:
        """Gives what waits the last known points, while nothing can be accounted.

        Returns:
            the error, and what was done meanwhile.
        """
        self._check_enforcement(dry_run=False)
        report.t = source.controller().time
        opened = self._store.transact(lambda some: self._intake.open(some, report.t))
        with self._store.reading() as view:
            last = view.latest_standings()
        if not last:
            return error
        in_slurm = source.pending()
        observation = Observation(
            pending=self._segment.queue(in_slurm).jobs,
            running={},
            nodes=(),
            partitions_of={},
            tres=self._config.fairness.tres,
            tenures=opened.tenures,
            t=opened.watermark.accounted_to,
            stranded=self._segment.stranded(in_slurm),
        )
        reason = f"points of cycle {last[0].cycle}; the controller's clock is behind it"
        points = {row.organization: row.priority for row in last}
        wanted = Wanted(points=points, reasons=dict.fromkeys(points, reason))
        self._plan_unless_paused(report, source, observation, wanted)
        report.pushed = push.carry_out(self._store, self._slurm, report.planned)
        if report.pause is not None:
            return error
        return ClockError(f"{error}; new jobs get the points of cycle {last[0].cycle} meanwhile")

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

    def end(self) -> None:
        """Ends what works beside the cycles, of which no more will be run."""
        for work in (self._estimates, self._forecasts):
            if work is not None:
                work.stop()

    def prune(self, source: Source | None = None, *, until: float = math.inf) -> int:
        """Deletes what no value depends on any more, in several transactions.

        Args:
            source: as for `run`.
            until: second of the monotonic clock from which no other transaction is begun.

        Returns:
            how many runs.

        Raises:
            SlurmError: it is unknown which jobs are still there.
            StoreError: not all was deleted.
        """
        self._intake.forget()
        self._managed.forget()
        source = source or self._slurm
        controller = source.controller()
        now = controller.time
        queue = source.pending()
        known = controller.accounting_backlog == 0 and not queue.malformed
        started = source.started()  # of which accounting may not know yet
        live = self._live_keys(push.live_keys([*queue.jobs, *started])) if known else None
        service = self._config.service

        def prune_jobs(transaction: Transaction) -> None:
            for channel in CHANNELS.values():
                if live is not None and channel.per_job:
                    transaction.prune_managed_values(channel.name, live)
            if known:
                submission.forget(transaction, queue.jobs)
                transaction.prune_kept_back(
                    {number for job in queue.jobs for number in (job.job_id, job.array_job_id)}
                    | {number for job in started for number in (job.job_id, job.array_job_id)}
                )

        def prune_history(transaction: Transaction) -> int:
            return transaction.prune_history(
                now - service.keep_history, pushes_before=now - service.keep_pushes
            )

        def prune_runs(transaction: Transaction) -> int:
            return self._intake.open(transaction, now).prune(
                overlap=max(service.overlap, service.keep_runs)
            )

        self._store.transact(prune_jobs)
        self._as_often_as_needed(prune_history, until)
        return self._as_often_as_needed(prune_runs, until)

    def _as_often_as_needed(self, prune: Callable[[Transaction], int], until: float) -> int:
        pruned = 0
        while rows := self._store.transact(prune):
            pruned += rows
            if time.monotonic() >= until:
                break
        return pruned

    def _live_keys(self, known: set[str]) -> set[str] | None:
        """Returns the keys of jobs that have not ended, None if a line of them cannot be read.

        Args:
            known: of jobs that wait or run. Those that ran may have been requeued meanwhile.
        """
        with self._store.reading() as view:
            live = known | {
                key
                for run in view.unfinished_runs()
                for key in (str(run.key.job_id), str(run.array_job_id))
            }
            managed = {
                key
                for channel in CHANNELS.values()
                if channel.per_job
                for key in view.managed_values(channel.name)
            }
        missing = sorted(int(key) for key in managed - live)
        for record in self._slurm.records_of(missing) if missing else ():
            if isinstance(record, Malformed):
                return None
            if record.state in UNFINISHED_STATES:
                live.add(str(record.job_id))
        return live

    def _check_enforcement(self, *, dry_run: bool) -> None:
        """Prevents writes into Slurm where users decide what they are computed from.

        What is accounted stays, for it is no worse than what Slurm itself keeps.
        """
        if self._intake.layout.enforces_accounts or self._config.slurm.allow_unenforced_accounts:
            return
        if not dry_run:
            raise UnenforcedAccountsError(f"nothing is written into Slurm: {NOT_ENFORCED}")
        log.warning("without --dry-run nothing would be written into Slurm", why=NOT_ENFORCED)

    def _observe(self, report: CycleReport, opened: OpenLedger, source: Source) -> Observation:
        in_slurm = source.pending()
        queue = self._segment.queue(in_slurm)
        in_cluster = source.nodes()
        self._intake.note_nodes(in_cluster.keys())  # the next cycle finds out whose new ones are
        layout = self._intake.layout
        nodes = self._segment.nodes(in_cluster, layout)
        self._count_unknown_accounts(report, queue.jobs)
        report.tally.quarantined += len(queue.malformed) + queue.more_malformed
        names = [item.name for item in self._config.organizations]

        def note(transaction: Transaction) -> tuple[Observation, Demand]:
            transaction.quarantine(queue.malformed, report.t, more=queue.more_malformed)
            observation = Observation(
                pending=queue.jobs,
                running=opened.running_by_organization(transaction),
                nodes=nodes.values(),
                partitions_of=layout.partitions_of_nodes(),
                tres=self._config.fairness.tres,
                tenures=opened.tenures,
                t=report.t,
                stranded=self._segment.stranded(in_slurm),
            )
            note_capacities(transaction, observation, names, opened.watermark.opened)
            if layout is not self._noted:  # as long as it is not reread, it is the same
                tres, since = self._config.fairness.tres, opened.watermark.opened
                note_layout(transaction, layout, tres, report.t, since)
            managed = self._managed.read(transaction)

            def own_priority(job: PendingJob) -> int:
                found = managed.get(self._channel.key_of(job))
                return self._channel.own_priority(job, None if found is None else found.asked)

            scene = Scene(
                t=report.t,
                rooms=Rooms(layout.partitions, nodes),
                organization_of=observation.organization_of,
                own_priority=own_priority,
                started=report.started,
                running_tasks=lambda arrays: opened.running_tasks(transaction, arrays),
            )
            demand = self._demand.after(queue.jobs, transaction.kept_back(), scene)
            transaction.save_kept_back(demand.news)
            return observation, demand

        observation, self._demand = self._store.transact(note)
        self._noted = layout
        return observation

    def _count_unknown_accounts(self, report: CycleReport, pending: Sequence[PendingJob]) -> None:
        """Counts jobs of accounts of no organization, for accounting does not know them.

        One that has just been added is known in the next cycle.
        """
        found = self._intake.layout.of_unknown_accounts(pending)
        report.of_unknown_accounts = sum(found.values())
        if found.keys() - self._unknown_accounts:
            self._intake.forget_layout()
        if found and found.keys() != self._unknown_accounts:
            log.warning(
                "pending jobs of accounts unknown to Slurm's accounting have no organization",
                jobs=report.of_unknown_accounts,
                accounts=names_shown(found),
            )
        self._unknown_accounts = frozenset(found)

    def _contributions(self, observation: Observation, stay: Stay | None) -> Contributions | None:
        if self._estimates is None or not self._rule.estimates:
            return None
        return self._estimates.contributions(
            self._config,
            lambda: observation.counting_jobs(self._demand.counting),
            observation.t,
            since=0 if stay is None else stay.since,
        )

    def _points(self, ranking: Ranking) -> dict[str, int]:
        others = others_can_add(self._intake.layout, self._channel.factor)
        order = ranking.order
        return scale(len(order), others, self._config.push.influence).points_of(order)

    def _plan_unless_paused(
        self, report: CycleReport, source: Source, observation: Observation, wanted: Wanted
    ) -> None:
        """Plans what is wanted, or what a pause leaves to do."""
        report.exceptions = self._exceptions.follow(source, report.t)
        self._note_pause(report)
        if report.pause is None:
            self._plan(report, observation, wanted)
        else:
            self._plan_pause(report, report.pause)

    def _note_pause(self, report: CycleReport) -> None:
        """Finds out whether we are paused, and logs it when that has changed."""
        with self._store.reading() as view:
            report.pause = view.pause()
        if report.pause == self._pause:
            return
        self._pause = report.pause
        if report.pause is None:
            log.info("steering goes on after a pause")
        else:
            log.warning("steering is paused", by=report.pause.user, why=report.pause.reason)

    def _plan_pause(self, report: CycleReport, pause: PauseRow) -> None:
        """Plans to put back what was found, at once; unless it is to stay as it was written."""
        if not pause.keep:
            stamp = Stamp(report.number, report.t)
            report.planned = plan_rollback(self._store, self._slurm, CHANNELS.values(), stamp)
        if self._cut_off is not None:
            self._cut_off.last_known = None

    def _plan(self, report: CycleReport, observation: Observation, wanted: Wanted) -> None:
        stamp = Stamp(report.number, report.t)
        channel = self._channel
        holders = observation.holders(*self._intake.layout.accounts)
        claims = claims_of(self._config.organizations, holders, observation.left_out)
        with self._store.reading() as view:
            managed = self._managed.read(view)
            published = view.published_points()
            of_jobs = {
                one.name: managed if one is channel else view.managed_values(one.name)
                for one in CHANNELS.values()
                if one.per_job
            }
        given = submission.given_on(channel, published)
        least = channel.least_asked(lambda: self._intake.layout.settings)
        basis = PlanBasis(
            points=wanted.points, claims=claims, given=given, least=least, managed=managed
        )
        unsettled = self._settled.others(observation.pending, basis)
        looked_at = unsettled if channel.per_job else observation.pending
        targets = channel.targets(self._slurm, looked_at, claims)
        new = submission.first_seen(targets, managed)
        report.at_submission = submission.found_at(new, given, stamp)
        known = submission.given_on(SITE_FACTOR, published).union(wanted.points.values())
        foreign = push.foreign(channel, targets, managed, known)
        at_site = SiteFactors(
            claims=claims,
            points={
                name: value if channel is SITE_FACTOR else 0
                for name, value in wanted.points.items()
            },
            managed=of_jobs[SITE_FACTOR.name],
            given=submission.given_on(SITE_FACTOR, published),
            ours=known,
        )
        first = FirstJobs.among(observation.pending, report.exceptions, self._slurm, at_site)
        left_alone = {target.key for target in foreign}
        if channel is SITE_FACTOR:
            left_alone |= first.keys
        report.set_by_others = push.news_of_foreign(foreign, managed) if channel.per_job else {}
        ours = [target for target in targets if target.key not in left_alone]
        needed = push.plan(channel, ours, managed, wanted, stamp, given, least)
        open_keys = {item.key for item in needed} | first.keys
        self._settled.settle(observation.pending, unsettled, open_keys)
        others = [other for other in CHANNELS.values() if other is not channel]
        needed += first.without(plan_rollback(self._store, self._slurm, others, stamp))
        needed += push.put_back(
            channel, self._slurm, observation.stranded, managed, stamp, given, least
        )
        room = max(wanted.points.values(), default=0)
        report.first = first.plan(observation.pending, needed, at_site, room, stamp)
        needed += report.first.pushes
        report.planned = most_urgent(needed, observation.pending, self._limits)
        report.postponed = len(needed) - len(report.planned)
        made = [item for item in report.planned if item.channel == channel.name]
        keys = {item.key for item in made}  # a job that is postponed is seen again next time
        seen = [one for one in new if one.key in keys]
        report.missed = submission.count_missed(seen, looked_at, published, wanted)
        strays = self._followers.await_values(
            channel, observation.pending, values_after(ours, made, wanted), managed
        )
        user_top = self._intake.layout.settings.user_top
        report.foreign = Foreign(
            () if channel.per_job else tuple(target.key for target in foreign),
            tuple(job.label for job in strays),
            set_by_hand(observation.pending, of_jobs, known, user_top=user_top),
        )
        self._log_foreign(report.foreign)
        if self._cut_off is not None:
            self._cut_off.last_known = LastKnown(
                cycle=report.number,
                wanted=wanted,
                claims=claims,
                given=given,
                least=least,
                keys=frozenset(push.live_keys(observation.pending)).union(managed),
            )

    def _log_foreign(self, foreign: Foreign) -> None:
        """Logs what others have set, when it is not what they had in the cycle before."""
        if foreign == self._foreign:
            return
        self._foreign = foreign
        if foreign == Foreign():
            log.info("no foreign priorities are left", channel=self._channel.name)
            return
        log.warning(
            "somebody else has set priorities; they are left as they are",
            channel=self._channel.name,
            targets=listed(foreign.targets),
            jobs=listed(foreign.jobs),
            **{f"by_{kind}": names_shown(labels) for kind, labels in foreign.by_hand.items()},
        )

    def _push(self, report: CycleReport, tenures: Tenures, points: Mapping[str, int]) -> None:
        """Writes the table of points first: what is submitted meanwhile goes by the new order."""
        self._store.check()
        holders = {
            account: tenures.holder("account", account, report.t)
            for account in self._intake.layout.accounts
        }
        by_account = {name: points[held] for name, held in holders.items() if held in points}
        table = self._table if report.pause is None else self._no_table
        if table.keep(by_account, report.t, self._slurm_time):
            report.table_written = report.t
        submission.note_found(self._store, report.at_submission)
        note_passed(self._store, report.first)
        if report.set_by_others:
            news = report.set_by_others
            self._store.transact(lambda rows: rows.note_by_hand(self._channel.name, news))
            self._managed.forget()
        report.pushed = push.carry_out(self._store, self._slurm, report.planned)
        all_written = not report.pushed.refused + report.pushed.unconfirmed
        if self._config.push.touch and all_written and report.pause is None:
            fresh = {one.target for one in report.planned if one.channel == SITE_FACTOR.name}
            report.touched = self._followers.touch(self._slurm, fresh, self._store.check)
        table.end(self._slurm_time)

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
            by_hand={kind: len(labels) for kind, labels in report.foreign.by_hand.items()},
        )

        def save(transaction: Transaction) -> None:
            transaction.save_cycle(row)
            if not message:
                transaction.save_standings(report.standings)
                transaction.save_pending_jobs(report.pending_jobs)
            if outcome == STEERED:
                transaction.note_steering(self._steering(report))

        try:
            self._store.transact(save)
        except StoreError:
            if not message:
                raise
            log.warning("the failed cycle could not be recorded", outcome=outcome)

    def _steering(self, report: CycleReport) -> SteeringRow:
        if report.pause is not None:
            return SteeringRow(since=report.t, rule="", chosen="", channel="")
        return SteeringRow(
            since=report.t,
            rule=report.rule,
            chosen=self._rule.name,
            channel=self._channel.name,
        )


def outcome_of(failure: Exception) -> str:
    """Names the outcome that a failure is recorded under: ``defect`` if it was not foreseen."""
    return next((name for kind, name in FAILURES.items() if isinstance(failure, kind)), "defect")
