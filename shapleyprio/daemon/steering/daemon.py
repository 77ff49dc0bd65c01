"""The daemon: runs cycles on schedule until it is stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from threading import Lock, Thread
from time import monotonic
from typing import Protocol

import sdnotify
import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from shapleyprio.common.wording import visible
from shapleyprio.config import Config, ConfigError
from shapleyprio.config.written import written
from shapleyprio.daemon.answering.changes import read_changes
from shapleyprio.daemon.answering.freshness import patience_of
from shapleyprio.daemon.answering.status import DAY
from shapleyprio.daemon.drift.live import LiveDrift
from shapleyprio.daemon.pushing.lease import Lease, LeaseHeldError
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.dry_run import DryRun
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.daemon.steering.outcomes import FAILURES, outcome_of
from shapleyprio.daemon.steering.report import CycleReport
from shapleyprio.slurm.port import AdapterInUse, SlurmError
from shapleyprio.slurm.releases import untested
from shapleyprio.slurm.shared_reading import SharedReading, Source
from shapleyprio.store import StoreError

VERSION = version("shapleyprio")
PRUNE_SECONDS = 3600
PRUNING_SECONDS = 10.0
"""For so long no cycle waits for more to be pruned than is under way."""
FIRST_DRIFT_SECONDS = 60
SHORTEST_REST = 0.1  # of the poll interval, from the end of a cycle to the next one
LOST_SECONDS = 8.0
"""Who stops does not wait any longer for a store that does not answer."""
REFUSALS: tuple[type[Exception], ...] = (ConfigError, *FAILURES)

log = structlog.get_logger(__name__)


class StatusServer(Protocol):
    """Serves metrics and the status page, on threads of its own."""

    def open(self, config: Config) -> None:
        """Serves from now on, or as soon as it can; raises ConfigError if it never can."""

    def renew(self, config: Config) -> None:
        """Takes over a new configuration; raises ConfigError, and changes nothing, if it is bad."""

    def close(self) -> None:
        """Serves no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonParts:
    """What a daemon works with.

    Attributes:
        read_config: rereads the configuration, for SIGHUP.
        make_cycles: builds from a configuration what runs the cycles, for each of the cluster's
            ledgers.
        metrics: updated after every cycle.
        site: where metrics and status are served.
        lease: keeps a second daemon away from the same cluster. Cycles work on its `store`.
        standby: whether to wait where another daemon has the lease, instead of giving up.
        drift: replays the last window now and then, beside the cycles; None for never.
        dry_run: prepares cycles that write nothing into Slurm and shows what they found; None to
            steer. The lease and what `make_cycle` works on are then of its copy of the store.
    """

    read_config: Callable[[], Config]
    make_cycles: Callable[[Config], Sequence[Cycle]]
    metrics: Metrics
    site: StatusServer
    lease: Lease
    standby: bool = False
    drift: LiveDrift | None = None
    dry_run: DryRun | None = None


class Daemon:
    """Runs cycles on one thread and answers signals on the main one.

    Args:
        config: to begin with.
        parts: what it works with.
    """

    def __init__(self, config: Config, parts: DaemonParts) -> None:
        self._config = config
        self._read_config = parts.read_config
        self._make_cycles = parts.make_cycles
        self._cycles = parts.make_cycles(config)
        self._metrics = parts.metrics
        self._site = parts.site
        self._lease = parts.lease
        self._standby = parts.standby
        self._drift = parts.drift
        self._dry_run = parts.dry_run
        self._took_over = False
        self._noted: Config | None = None
        if self._dry_run is None:
            self._metrics.leads = lambda: self._lease.leads
        self._activity: tuple[int, int] | None = None
        self._slurm_version = ""
        self._adapter: AdapterInUse | None = None
        self._newcomers = False
        self._changing_schedule = Lock()
        self._stopping = False
        self._notifier = sdnotify.SystemdNotifier()
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(1), "drift": ThreadPoolExecutor(1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )

    def run(self) -> bool:
        """Runs cycles until SIGTERM or SIGINT; SIGHUP rereads the configuration.

        A daemon that loses its lease waits until it is free again.

        Returns:
            whether the store has answered until the end; if not, a thread may still wait for it.

        Raises:
            LeaseHeldError: another process steers the cluster.
            StoreError: the store cannot be used.
            ConfigError: metrics cannot be served as configured.
        """
        signals = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
        if not self._standby:
            self._lease.take()
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # before any thread is started
        self._site.open(self._config)
        self._scheduler.add_job(
            self._cycle_or_log,
            "interval",
            seconds=self._config.service.poll_interval,
            id="cycle",
            next_run_time=datetime.now(UTC),
        )
        self._scheduler.add_job(self._prune, "interval", seconds=PRUNE_SECONDS, id="prune")
        self._schedule_new_job_poll()
        self._schedule_drift()
        self._scheduler.start()
        self._notifier.notify("READY=1")
        if not self._lease.is_ours:
            log.info("standing by", cluster=self._lease.store.cluster)
            self._notifier.notify("STATUS=standing by")
        self._lease.keep(self._lead, self._stand_by)
        while signal.sigwait(signals) == signal.SIGHUP:
            self._scheduler.add_job(self._reload)
        log.info("stopping", after="the running cycle")
        self._notifier.notify("STOPPING=1")
        if self._drift is not None:
            self._drift.stop()
        if not self._end_schedule():
            log.error("the store does not answer; the running cycle is not waited for")
            return False
        self._site.close()
        if not self._lease.release():
            log.error("the store does not answer; the lease is not given back")
            return False
        return True

    def _end_schedule(self) -> bool:
        """Prevents any other cycle and waits for the running one; returns whether that has ended.

        It is given up when the store has not answered for a while.
        """
        with self._changing_schedule:
            self._stopping = True
        ending = Thread(target=self._scheduler.shutdown, name="ending", daemon=True)
        ending.start()
        while ending.is_alive() and self._lease.silent_seconds < LOST_SECONDS:
            ending.join(0.1)
        return not ending.is_alive()

    def _lead(self) -> None:
        """Begins to steer, as the lease has become ours."""
        log.info("steering", cluster=self._lease.store.cluster)
        self._took_over = True
        self._change_schedule(lambda: self._bring_forward(datetime.now(UTC)))

    def _stand_by(self, lost: LeaseHeldError) -> None:
        """Steers no more, as another process has taken the lease."""
        for cycle in self._cycles:
            self._fail(lost, cycle.ledger)
        log.info("standing by", cluster=self._lease.store.cluster)
        self._change_schedule(lambda: self._scheduler.add_job(self._rest))

    def _rest(self) -> None:
        """Ends what works beside the cycles, as another process steers; leading restarts it."""
        if not self._lease.is_ours:
            for cycle in self._cycles:
                cycle.end()
            self._took_over = True

    def _change_schedule(self, change: Callable[[], object]) -> None:
        """Changes the schedule from within one of its jobs.

        While the scheduler is shut down it holds its locks and waits for these jobs, which must
        not wait for it then.
        """
        with self._changing_schedule:
            if not self._stopping:
                change()

    def run_once(self) -> None:
        """Runs one cycle of each ledger, and prunes the store.

        Raises:
            SlurmError, StoreError, AccountingError, LeaseHeldError: one failed; nothing was lost.
        """
        with self._lease.held():
            self._note_configuration()
            _, failed = self._run_cycles()
            for failure in failed.values():
                raise failure
            if self._dry_run is None:
                self._prune()

    def _cycle_or_log(self) -> None:
        """Runs one cycle; a failure is logged and counted, and the next cycle continues."""
        if not self._lease.is_ours:
            return
        began = datetime.now(UTC)
        try:
            if self._took_over:  # what was found out before another daemon steered may not hold
                self._cycles = self._make_cycles(self._config)
                self._took_over, self._noted = False, None
            self._note_configuration()
            self._look_first()
            reorder, failed = self._run_cycles()
        except LeaseHeldError as lost:
            log.warning("cycle given up", why=str(lost))  # the lease's own thread counts the loss
        except Exception as failure:  # noqa: BLE001  # `_fail` logs it
            for cycle in self._cycles:
                self._fail(failure, cycle.ledger)
        else:
            for ledger, why in failed.items():
                self._fail(why, ledger)
            self._hasten(began, reorder)
            self._publish_changes()

    def _note_configuration(self) -> None:
        """Stores the configuration that steers from now on; if that fails, the next time."""
        if self._noted is self._config or self._dry_run is not None:
            return
        said, now = written(self._config), int(time.time())
        try:
            self._lease.store.transact(
                lambda rows: rows.history.note_configuration(now, VERSION, said)
            )
        except LeaseHeldError:
            raise
        except StoreError as failure:
            log.warning("the configuration is not on record yet", why=str(failure))
        else:
            self._noted = self._config

    def _note_refusal(self, why: str) -> None:
        """Stores that a configuration was refused, where this daemon steers."""
        if self._lease.is_ours and self._dry_run is None:
            now = int(time.time())
            with suppress(StoreError):  # the log says it
                self._lease.store.transact(
                    lambda rows: rows.history.note_refusal(now, VERSION, why)
                )

    def _hasten(self, began: datetime, reorder: int | None) -> None:
        """Brings the next cycle forward to when the order changes, if that is sooner.

        Who comes first is then as old as the last cycle only where something started or ended.
        """
        if reorder is not None:
            rest = timedelta(seconds=SHORTEST_REST * self._config.service.poll_interval)
            due = max(began + timedelta(seconds=reorder + 1), datetime.now(UTC) + rest)
            self._change_schedule(lambda: self._bring_forward(due))

    def _bring_forward(self, due: datetime) -> None:
        if due < self._scheduler.get_job("cycle").next_run_time:
            self._scheduler.modify_job("cycle", next_run_time=due)

    def _fail(self, failure: Exception, ledger: str) -> None:
        outcome = outcome_of(failure)
        foreseen = isinstance(failure, tuple(FAILURES))
        log.error(
            "cycle failed",
            **self._naming(ledger),
            outcome=outcome,
            **({"why": str(failure)} if foreseen else {"exc_info": failure}),
        )
        self._metrics.of(ledger).publish_failure(outcome)
        if foreseen:
            self._notifier.notify(f"STATUS=cycle failed: {visible(str(failure))}")

    def _naming(self, ledger: str) -> dict[str, str]:
        """Returns what to log of a ledger: nothing where there is one alone."""
        return {"ledger": ledger} if len(self._cycles) > 1 else {}

    def _run_cycles(self) -> tuple[int | None, dict[str, Exception]]:
        """Runs one cycle of each ledger, whatever becomes of the others.

        Returns:
            seconds until the order changes in one of them, None if in none; and ledger -> why its
            cycle failed.

        Raises:
            LeaseHeldError: another process steers the cluster.
        """
        if self._dry_run is not None:
            self._dry_run.begin([cycle.ledger for cycle in self._cycles])
        reorders: list[int] = []
        failed: dict[str, Exception] = {}
        for cycle, source in self._shared():
            try:
                report = self._run_cycle(cycle, source)
            except LeaseHeldError:
                raise
            except Exception as failure:  # noqa: BLE001  # who called logs it, or raises it
                failed[cycle.ledger] = failure
                if isinstance(failure, StoreError):
                    self._go_on(cycle, source)
            else:
                reorders += [s for s in [report.seconds_until_reorder] if s is not None]
        if self._dry_run is not None:
            self._dry_run.show()
        return min(reorders, default=None), failed

    def _go_on(self, cycle: Cycle, source: Source | None) -> None:
        """Steers what it can without the store."""
        try:
            written = cycle.go_on(source)
        except (SlurmError, StoreError) as why:
            log.error("nothing goes on without the store", why=str(why))
        else:
            self._metrics.of(cycle.ledger).publish_without_store(written)

    def _shared(self) -> Iterator[tuple[Cycle, Source | None]]:
        """Yields each cycle, and what it shares with the others as long as that is young."""
        reading: SharedReading | None = None
        for cycle in self._cycles:
            if len(self._cycles) > 1 and (reading is None or reading.is_old):
                reading = cycle.share()
            yield cycle, reading

    def _run_cycle(self, cycle: Cycle, source: Source | None) -> CycleReport:
        dry_run = self._dry_run is not None
        report = cycle.run(dry_run=dry_run, source=source)
        self._log_version(report.slurm_version)
        self._log_adapter(report.adapter)
        self._metrics.of(cycle.ledger).publish(report, dry_run=dry_run)
        self._notifier.notify(f"STATUS=cycle {report.number}: {report.pushed.applied} written")
        log.info(
            "cycle",
            **self._naming(cycle.ledger),
            number=report.number,
            t=report.t,
            records_read=report.tally.seen,
            runs_new_or_changed=report.tally.kept,
            quarantined=report.tally.quarantined,
            planned=len(report.plan.pushes),
            written=report.pushed.applied,
            touched=report.touched,
            postponed=report.plan.postponed,
            seconds=round(sum(report.seconds.values()), 3),
        )
        if self._dry_run is not None:
            self._dry_run.end(cycle.ledger, report)
        return report

    def _publish_changes(self) -> None:
        """Publishes what changed in the last day; if it cannot be read, what is known of it."""
        if self._dry_run is not None:
            return
        since = int(time.time()) - DAY
        for cycle in self._cycles:
            with suppress(StoreError), self._lease.store.ledger(cycle.ledger).reading() as view:
                patience = patience_of(self._config.service.poll_interval)
                self._metrics.of(cycle.ledger).publish_changes(read_changes(view, since, patience))

    def _log_version(self, version: str) -> None:
        """Logs which Slurm this is, once and again when it is another one."""
        if version != self._slurm_version:
            self._slurm_version = version
            log.info("Slurm", version=version)
            if reason := untested(version):
                log.warning(f"this release of Slurm {reason}", version=version)

    def _log_adapter(self, adapter: AdapterInUse | None) -> None:
        """Logs that another adapter is used than is preferred, once and again when that changes."""
        if adapter != self._adapter:
            self._adapter = adapter
            if adapter is not None and adapter.why:
                log.warning(
                    "another adapter than the preferred one is used",
                    adapter=adapter.name,
                    instead_of=adapter.instead_of,
                    why=adapter.why,
                )

    def _schedule_new_job_poll(self) -> None:
        """Schedules the poll for new and changed jobs between cycles."""
        if self._scheduler.get_job("new_job_poll") is not None:
            self._scheduler.remove_job("new_job_poll")
        interval = self._config.service.new_jobs_interval
        if interval is not None:
            self._scheduler.add_job(
                self._poll_new_jobs, "interval", seconds=interval, id="new_job_poll"
            )

    def _follow(self, old: Config) -> None:
        """Goes at the pace of the new configuration."""
        if self._config.drift.interval != old.drift.interval:
            self._schedule_drift()
        if self._config.service.new_jobs_interval != old.service.new_jobs_interval:
            self._schedule_new_job_poll()
        self._scheduler.reschedule_job(
            "cycle", trigger="interval", seconds=self._config.service.poll_interval
        )
        self._bring_forward(datetime.now(UTC))

    def _look_first(self) -> None:
        """Notes before the first cycle what the polls compare with.

        Noted after it, a job that came when the cycle had read the queue would not be noticed.
        Every other look is a poll's, and the cycle that it calls for reads the queue later.
        """
        if self._activity is None:
            with suppress(SlurmError):  # the cycle finds out
                self._activity = self._cycles[0].activity()

    def _poll_new_jobs(self) -> None:
        """Starts a cycle at once for jobs that came or were changed, and one more at the next poll.

        The site factor of a job can be read only when Slurm's scheduler has seen it.
        """
        if not self._lease.is_ours:
            return
        try:
            activity = self._cycles[0].activity()
        except SlurmError:
            return  # the next cycle finds out
        came = activity != self._activity and self._activity is not None
        self._activity = activity
        if came or self._newcomers:
            self._change_schedule(lambda: self._bring_forward(datetime.now(UTC)))
        self._newcomers = came

    def _schedule_drift(self) -> None:
        """Replays from soon on, when the first cycles have run, on a thread of its own."""
        if self._scheduler.get_job("drift") is not None:
            self._scheduler.remove_job("drift")
        interval = self._config.drift.interval
        if self._drift is not None and interval is not None:
            soon = timedelta(seconds=min(interval, FIRST_DRIFT_SECONDS))
            self._scheduler.add_job(
                self._replay_drift,
                "interval",
                seconds=interval,
                id="drift",
                executor="drift",
                next_run_time=datetime.now(UTC) + soon,
            )

    def _replay_drift(self) -> None:
        assert self._drift is not None
        if self._lease.is_ours:
            self._drift.replay(self._config)

    def _prune(self) -> None:
        if not self._lease.is_ours:
            return
        until = monotonic() + PRUNING_SECONDS
        for cycle, source in self._shared():
            try:
                pruned = cycle.prune(source, until=until)
            except tuple(FAILURES) as failure:
                log.error("pruning failed", **self._naming(cycle.ledger), why=str(failure))
            else:
                log.info("pruned", **self._naming(cycle.ledger), runs=pruned)
        if monotonic() >= until:  # cycles that are due come first
            self._change_schedule(self._prune_again)

    def _prune_again(self) -> None:
        if self._scheduler.running:
            self._scheduler.modify_job("prune", next_run_time=datetime.now(UTC))

    def _reload(self) -> None:
        """Takes a new configuration over as a whole, or keeps the old one as a whole."""
        self._notifier.notify("RELOADING=1")
        try:
            config = self._read_config()
            for key, old, new in (
                ("store.url", self._config.store.url, config.store.url),
                ("store.journal", self._config.store.journal, config.store.journal),
                ("metrics.address", self._config.metrics.address, config.metrics.address),
                ("service.socket", self._config.service.socket, config.service.socket),
                ("service.log_level", self._config.service.log_level, config.service.log_level),
                ("service.log_format", self._config.service.log_format, config.service.log_format),
            ):
                if old != new:
                    log.warning("takes effect at the next start only", key=key)
            cycles = self._make_cycles(config)
            self._site.renew(config)
        except REFUSALS as failure:
            log.error("the new configuration is refused, the old one stays", why=str(failure))
            self._note_refusal(str(failure))
        else:
            before, self._config = self._config, config
            self._replace(cycles)
            self._lease.seconds = config.service.lease
            self._change_schedule(lambda: self._follow(before))
            log.info("configuration reloaded")
        self._notifier.notify("READY=1")

    def _replace(self, cycles: Sequence[Cycle]) -> None:
        """Runs these cycles from now on, and ends what served ledgers that are no more."""
        before, self._cycles = self._cycles, cycles
        new = {cycle.ledger: cycle for cycle in cycles}
        self._metrics.withdraw_others(new.keys())
        for cycle in before:
            if cycle.ledger in new:
                new[cycle.ledger].continue_from(cycle)
            else:
                cycle.end()
