"""One cycle of the daemon's life: settle, account, observe, rank, push, record."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import structlog

from shapleyprio.config import Config
from shapleyprio.config.membership import claims_of
from shapleyprio.config.segments import segment_of
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.after_end import count_work_after_end, most_after_end
from shapleyprio.daemon.accounting.cluster_clock import ClockError
from shapleyprio.daemon.accounting.intake import Intake
from shapleyprio.daemon.accounting.tally import Opening
from shapleyprio.daemon.estimation.live import LiveEstimates
from shapleyprio.daemon.forecasting.live import LiveForecasts
from shapleyprio.daemon.pushing import push, submission
from shapleyprio.daemon.pushing.by_hand import SITE_FACTOR, note_set_since
from shapleyprio.daemon.pushing.cut_off import CutOff
from shapleyprio.daemon.pushing.following import Followers
from shapleyprio.daemon.pushing.going_first import note_passed
from shapleyprio.daemon.pushing.lasting import Guaranteed, split_off
from shapleyprio.daemon.pushing.lease import LeaseHeldError
from shapleyprio.daemon.pushing.managed import KnownValues
from shapleyprio.daemon.pushing.planning import Plan, PlanInput, Planner
from shapleyprio.daemon.pushing.push import Stamp, Wanted
from shapleyprio.daemon.pushing.urgency import Limits
from shapleyprio.daemon.ranking.competing import competition
from shapleyprio.daemon.ranking.guarantees import guaranteed_jobs
from shapleyprio.daemon.ranking.observation import Observation
from shapleyprio.daemon.ranking.observing import ClusterObserver, Observed
from shapleyprio.daemon.ranking.ranking import Ranker
from shapleyprio.daemon.steering.collecting import collecting_afterwards
from shapleyprio.daemon.steering.pruning import prune
from shapleyprio.daemon.steering.report import (
    NOT_ENFORCED,
    STEERED,
    CycleReport,
    StopWatch,
    UnenforcedAccountsError,
    outcome_of,
    record,
)
from shapleyprio.fairness.rules import RULES
from shapleyprio.fairness.tenure import Tenures
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import Slurm
from shapleyprio.slurm.remembering import SharedReading, Source
from shapleyprio.store import ClusterStore, Journal

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
        self._estimates = estimates
        self._forecasts = forecasts
        self._channel = CHANNELS[config.push.channel]
        self._rule = RULES[config.fairness.rule]
        self._managed = KnownValues(self._channel.name)
        self._followers = Followers()
        limits = Limits(
            writes=config.push.most_writes, raises_of_user=config.push.most_raises_of_user
        )
        self._cut_off = (
            CutOff(self._channel, slurm, self._segment, limits, journal)
            if journal is not None and self._channel.per_job
            else None
        )
        self._intake = Intake(config, slurm, store, on_opening, self._segment)
        self._observer = ClusterObserver(
            config, store, self._intake.known, self._segment, self._channel, self._managed
        )
        self._ranker = Ranker(config, store, self._rule, self._channel, estimates)
        self._planner = Planner(
            slurm, store, self._channel, self._managed, limits, self._followers, self._cut_off
        )
        self._table = submission.TableKeeper(
            config.push.table, submission.lasting(config.service.poll_interval), store
        )
        self._no_table = submission.TableKeeper(None, 0, store)
        self._next: int | None = None

    def continue_from(self, before: Cycle) -> None:
        """Goes on after cycles of an earlier configuration: what they have logged is no news."""
        self._planner.continue_from(before._planner)

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
            report = CycleReport(number=view.history.next_cycle())
        if report.number != self._next:  # what another cycle did is not what we remember
            self._intake.forget()
        if dry_run or report.number != self._next:
            self._managed.forget()
        self._next = report.number + 1
        try:
            with collecting_afterwards():
                for so_far in self._steer(report, source or self._slurm, dry_run=dry_run):
                    report = so_far
        except LeaseHeldError:  # it is for another process to write down what happens
            raise
        except Exception as failure:
            self._managed.forget()
            self._record(report, started, outcome_of(failure), str(failure) or repr(failure))
            raise
        self._record(report, started, "dry_run" if dry_run else STEERED)
        return replace(report, conflicts=self._store.conflicts - conflicts)

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

    def _steer(
        self, report: CycleReport, source: Source, *, dry_run: bool
    ) -> Iterator[CycleReport]:
        """Goes through the phases; yields the report after each, so that it stands if one fails."""
        watch = StopWatch()
        if self._cut_off is not None:
            self._cut_off.hand_over(self._store)
        push.settle_open(self._store, self._slurm)
        try:
            for opened, accounted in self._intake.account(source):
                report = replace(report, t=opened.watermark.accounted_to, accounted=accounted)
                yield report
        except ClockError as error:
            if dry_run:
                raise
            yield from self._steer_by_last(report, source, error)
        layout = self._intake.known.layout
        if not dry_run:
            report = self._count_after_end(report, opened)
        report = replace(
            watch.lap(report, "account"),
            slurm_version=layout.version,
            adapter=self._slurm.adapter(),
        )
        yield report
        self._check_enforcement(dry_run=dry_run)
        observed = self._observer.observe(source, opened, report.accounted.started, report.t)
        report = replace(watch.lap(report, "observe"), jobs=observed.jobs)
        yield report
        ranked = self._ranker.rank(report.number, opened, observed, layout)
        report = replace(report, ranked=ranked)
        yield report
        guaranteed = guaranteed_jobs(
            observed,
            report.accounted.started,
            self._config.guarantees,
            ahead=self._config.fairness.guarantee_ahead,
        )
        plan = self._plan(report, observed.observation, ranked.wanted, source, guaranteed)
        report = replace(watch.lap(report, "rank"), plan=plan)
        yield report
        if not dry_run:
            for so_far in self._push(report, opened.tenures):
                report = so_far
                yield report
        report = watch.lap(report, "push")
        yield report
        if not dry_run:
            self._forecast(report, observed)

    def _forecast(self, report: CycleReport, observed: Observed) -> None:
        """Lets forecasts of starts go on beside the cycles."""
        if self._forecasts is not None and report.plan.pause is None:
            self._forecasts.follow(
                self._config,
                lambda: competition(
                    observed, report.ranked, self._config.service.overlap, self._slurm
                ),
                report.accounted.started,
                changed=report.tally.kept > 0,
            )

    def _count_after_end(self, report: CycleReport, opened: OpenLedger) -> CycleReport:
        after_end = count_work_after_end(
            self._store,
            self._slurm,
            opened.tenures,
            t=opened.watermark.observed_until,
            kill_wait=self._intake.known.layout.kill_wait_seconds,
        )
        users = most_after_end(self._store, t=report.t)
        return replace(report, after_end=after_end, users_after_end=users)

    def _steer_by_last(
        self, report: CycleReport, source: Source, error: ClockError
    ) -> Iterator[CycleReport]:
        """Gives what waits the last known points, while nothing can be accounted.

        Raises:
            ClockError: that error, and what was done meanwhile.
        """
        self._check_enforcement(dry_run=False)
        t = source.controller().time
        report = replace(report, t=t)
        yield report
        opened = self._store.transact(lambda some: self._intake.open(some, t))
        with self._store.reading() as view:
            last = view.history.latest_standings()
        if not last:
            raise error
        in_slurm = source.pending()
        observation = Observation(
            pending=self._segment.queue(in_slurm).jobs,
            running={},
            nodes=(),
            partitions_of={},
            tres=self._config.fairness.tres,
            tenures=opened.tenures,
            t=opened.watermark.accounted_to,
            queue=in_slurm,
        )
        reason = f"points of cycle {last[0].cycle}; the controller's clock is behind it"
        points = {row.organization: row.priority for row in last}
        wanted = Wanted(points=points, reasons=dict.fromkeys(points, reason))
        report = replace(report, plan=self._plan(report, observation, wanted, source))
        yield report
        pushed = push.carry_out(self._store, self._slurm, report.plan.pushes)
        yield replace(report, pushed=pushed)
        if report.plan.pause is not None:
            raise error
        raise ClockError(
            f"{error}; new jobs get the points of cycle {last[0].cycle} meanwhile"
        ) from error

    def _plan(
        self,
        report: CycleReport,
        observation: Observation,
        wanted: Wanted,
        source: Source,
        guaranteed: Guaranteed | None = None,
    ) -> Plan:
        layout = self._intake.known.layout
        holders = observation.holders(*layout.accounts)
        waiting = PlanInput(
            pending=observation.pending,
            stranded=self._segment.stranded(observation.queue),
            queue=observation.queue,
            claims=claims_of(self._config.organizations, holders, observation.left_out),
            layout=layout,
            wanted=wanted,
            stamp=Stamp(report.number, report.t),
            guaranteed=guaranteed,
        )
        return self._planner.plan(waiting, source)

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
        """Ends what works beside the cycles, after the last one."""
        for work in (self._estimates, self._forecasts):
            if work is not None:
                work.stop()

    def prune(self, source: Source | None = None, *, until: float = math.inf) -> int:
        """Deletes what no value depends on any more, as `pruning.prune` says.

        Args:
            source: as for `run`.
            until: second of the monotonic clock from which no other transaction is begun.
        """
        self._intake.forget()
        self._managed.forget()
        source = source or self._slurm
        return prune(self._config, self._slurm, self._store, source, until=until)

    def _check_enforcement(self, *, dry_run: bool) -> None:
        """Prevents writes into Slurm where users decide what they are computed from.

        What is accounted stays, for it is no worse than what Slurm itself keeps.
        """
        if (
            self._intake.known.layout.enforces_accounts
            or self._config.slurm.allow_unenforced_accounts
        ):
            return
        if not dry_run:
            raise UnenforcedAccountsError(f"nothing is written into Slurm: {NOT_ENFORCED}")
        log.warning("without --dry-run nothing would be written into Slurm", why=NOT_ENFORCED)

    def _push(self, report: CycleReport, tenures: Tenures) -> Iterator[CycleReport]:
        """Writes the table of points first: what is submitted meanwhile goes by the new order."""
        self._store.check()
        plan, points = report.plan, report.ranked.wanted.points
        holders = {
            account: tenures.holder("account", account, report.t)
            for account in self._intake.known.layout.accounts
        }
        by_account = {name: points[held] for name, held in holders.items() if held in points}
        table = self._table if plan.pause is None else self._no_table
        report = replace(report, keeps_table=table.path is not None)
        if table.keep(by_account, report.t, self._slurm_time):
            report = replace(report, table_written=report.t)
        submission.note_found(self._store, plan.at_submission)
        note_passed(self._store, plan.first)
        if plan.set_by_others:
            note_set_since(self._store, plan.set_by_others)
            self._managed.forget()
        pushed = push.carry_out(self._store, self._slurm, plan.pushes)
        report = replace(report, pushed=pushed)
        yield report
        fresh = {one.target for one in plan.pushes if one.channel == SITE_FACTOR.name}
        split_off(self._slurm, plan.parts, fresh, self._store.check)
        if self._config.push.touch and plan.pause is None and not pushed.failed:
            touched = self._followers.touch(self._slurm, fresh, self._store.check)
            report = replace(report, touched=touched)
            yield report
        table.end(self._slurm_time)

    def _slurm_time(self) -> int:
        return self._slurm.controller().time

    def _record(self, report: CycleReport, started: int, outcome: str, message: str = "") -> None:
        finished = int(self._clock())
        row = report.row(started=started, finished=finished, outcome=outcome, message=message)
        record(self._store, report, row, rule=self._rule.name, channel=self._channel.name)
