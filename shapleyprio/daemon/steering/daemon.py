"""The daemon: runs cycles on schedule until it is stopped."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from time import monotonic
from typing import Protocol

import sdnotify
import structlog

from shapleyprio.common.errors import ConfigError
from shapleyprio.common.wording import HOUR
from shapleyprio.config import Config
from shapleyprio.config.reference import written
from shapleyprio.daemon.answering.freshness import patience_of
from shapleyprio.daemon.drift.live import LiveDrift
from shapleyprio.daemon.pushing.lease import Lease, LeaseHeldError
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.dry_run import DryRun
from shapleyprio.daemon.steering.ledger_cycles import LedgerCycles
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.daemon.steering.report import FAILURES
from shapleyprio.daemon.steering.timetable import DRIFT, Timetable
from shapleyprio.slurm.port import SlurmError
from shapleyprio.store import StoreError

VERSION = version("shapleyprio")
CYCLE = "cycle"
PRUNE_SECONDS = HOUR
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
        self._notifier = sdnotify.SystemdNotifier()
        self._cycles = LedgerCycles(
            parts.make_cycles(config), parts.metrics, self._notifier.notify, parts.dry_run
        )
        self._site = parts.site
        self._lease = parts.lease
        self._standby = parts.standby
        self._drift = parts.drift
        self._dry_run = parts.dry_run
        self._took_over = False
        self._noted: Config | None = None
        if self._dry_run is None:
            parts.metrics.leads = lambda: self._lease.leads
        self._activity: tuple[int, int] | None = None
        self._newcomers = False
        self._timetable = Timetable()

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
        self._schedule_cycles()
        self._timetable.repeat("prune", self._prune, PRUNE_SECONDS)
        self._schedule_new_job_poll()
        self._schedule_drift()
        self._timetable.scheduler.start()
        self._notifier.notify("READY=1")
        if not self._lease.is_ours:
            log.info("standing by", cluster=self._lease.store.cluster)
            self._notifier.notify("STATUS=standing by")
        self._lease.keep(self._lead, self._stand_by)
        while signal.sigwait(signals) == signal.SIGHUP:
            self._timetable.scheduler.add_job(self._reload)
        log.info("stopping", after="the running cycle")
        self._notifier.notify("STOPPING=1")
        if self._drift is not None:
            self._drift.stop()
        if not self._timetable.end(lambda: self._lease.silent_seconds < LOST_SECONDS):
            log.error("the store does not answer; the running cycle is not waited for")
            return False
        self._site.close()
        if not self._lease.release():
            log.error("the store does not answer; the lease is not given back")
            return False
        return True

    def _lead(self) -> None:
        """Begins to steer, as the lease has become ours."""
        log.info("steering", cluster=self._lease.store.cluster)
        self._took_over = True
        self._timetable.change(self._cycle_at_once)

    def _stand_by(self, lost: LeaseHeldError) -> None:
        """Steers no more, as another process has taken the lease."""
        self._cycles.fail_all(lost)
        log.info("standing by", cluster=self._lease.store.cluster)
        self._timetable.change(lambda: self._timetable.scheduler.add_job(self._rest))

    def _rest(self) -> None:
        """Ends what works beside the cycles, as another process steers; leading restarts it."""
        if not self._lease.is_ours:
            self._cycles.end()
            self._took_over = True

    def run_once(self) -> None:
        """Runs one cycle of each ledger, and prunes the store.

        Raises:
            SlurmError, StoreError, AccountingError, LeaseHeldError: one failed; nothing was lost.
        """
        with self._lease.held():
            self._note_configuration()
            _, failed = self._cycles.run()
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
                self._cycles.each = self._make_cycles(self._config)
                self._took_over, self._noted = False, None
            self._note_configuration()
            self._look_first()
            reorder, failed = self._cycles.run()
        except LeaseHeldError as lost:
            log.warning("cycle given up", why=str(lost))  # the lease's own thread counts the loss
        except Exception as failure:  # noqa: BLE001  # it is logged
            self._cycles.fail_all(failure)
        else:
            for ledger, why in failed.items():
                self._cycles.fail(why, ledger)
            self._hasten(began, reorder)
            if self._dry_run is None:
                patience = patience_of(self._config.service.poll_interval)
                self._cycles.publish_changes(self._lease.store, patience)

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
            self._timetable.change(lambda: self._timetable.bring_forward(CYCLE, due))

    def _schedule_cycles(self) -> None:
        """Runs a cycle at once, and on from there."""
        interval = self._config.service.poll_interval
        self._timetable.repeat(CYCLE, self._cycle_or_log, interval, first=datetime.now(UTC))

    def _cycle_at_once(self) -> None:
        self._timetable.bring_forward(CYCLE, datetime.now(UTC))

    def _schedule_new_job_poll(self) -> None:
        """Polls for new and changed jobs between cycles."""
        interval = self._config.service.new_jobs_interval
        self._timetable.repeat("new_job_poll", self._poll_new_jobs, interval)

    def _follow(self, old: Config) -> None:
        """Goes at the pace of the new configuration."""
        if self._config.drift.interval != old.drift.interval:
            self._schedule_drift()
            if self._config.drift.interval is None:
                self._withdraw_drift()
        if self._config.service.new_jobs_interval != old.service.new_jobs_interval:
            self._schedule_new_job_poll()
        self._schedule_cycles()

    def _look_first(self) -> None:
        """Notes before the first cycle what the polls compare with.

        Noted after it, a job that came when the cycle had read the queue would not be noticed.
        Every other look is a poll's, and the cycle that it calls for reads the queue later.
        """
        if self._activity is None:
            with suppress(SlurmError):  # the cycle finds out
                self._activity = self._cycles.each[0].activity()

    def _poll_new_jobs(self) -> None:
        """Starts a cycle at once for jobs that came or were changed, and one more at the next poll.

        The site factor of a job can be read only when Slurm's scheduler has seen it.
        """
        if not self._lease.is_ours:
            return
        try:
            activity = self._cycles.each[0].activity()
        except SlurmError:
            return  # the next cycle finds out
        came = activity != self._activity and self._activity is not None
        self._activity = activity
        if came or self._newcomers:
            self._timetable.change(self._cycle_at_once)
        self._newcomers = came

    def _schedule_drift(self) -> None:
        """Replays from soon on, when the first cycles have run, on a thread of its own."""
        interval = self._config.drift.interval
        if self._drift is not None:
            soon = timedelta(seconds=min(interval or 0, FIRST_DRIFT_SECONDS))
            self._timetable.repeat(
                DRIFT,
                self._replay_drift,
                interval,
                first=datetime.now(UTC) + soon,
                thread=DRIFT,
            )

    def _withdraw_drift(self) -> None:
        """Shows no more what the last replay found, behind a replay that may be going on."""
        if self._drift is not None:
            withdraw = partial(self._drift.withdraw, self._config)
            self._timetable.scheduler.add_job(withdraw, executor=DRIFT)

    def _replay_drift(self) -> None:
        assert self._drift is not None
        if self._lease.is_ours:
            self._drift.replay(self._config)

    def _prune(self) -> None:
        if not self._lease.is_ours:
            return
        until = monotonic() + PRUNING_SECONDS
        self._cycles.prune(until)
        if monotonic() >= until:  # cycles that are due come first
            self._timetable.change(
                lambda: self._timetable.bring_forward("prune", datetime.now(UTC))
            )

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
            self._cycles.replace(cycles)
            self._lease.seconds = config.service.lease
            self._timetable.change(lambda: self._follow(before))
            log.info("configuration reloaded")
        self._notifier.notify("READY=1")
