"""`shapleyprio daemon`."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click
import sdnotify
import structlog
from structlog import PrintLoggerFactory
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_fixed

from shapleyprio.cli.answering import Answers
from shapleyprio.cli.common import (
    EXIT_CODES,
    alone,
    cluster_of,
    load,
    termination_unwinds,
)
from shapleyprio.cli.dry_running import render
from shapleyprio.cli.json_output import json_option, write_json
from shapleyprio.cli.options import config_option
from shapleyprio.cli.tables import standard_output
from shapleyprio.config import Config, connect
from shapleyprio.config.segments import segments_of
from shapleyprio.drift.live import LiveDrift
from shapleyprio.estimation.live import PATIENCE_SECONDS, LiveEstimates
from shapleyprio.estimation.worker import WORKER, EstimationWorker
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.fairness.tenure import LEFT_OUT, NOBODY
from shapleyprio.service.check import check
from shapleyprio.service.cut_off import journal_of
from shapleyprio.service.cycle import Cycle
from shapleyprio.service.daemon import Daemon, DaemonParts
from shapleyprio.service.dry_run import DryRun, Forecast, rehearse
from shapleyprio.service.estimate_metrics import EstimateGauges, EstimateMetrics
from shapleyprio.service.lease import Lease
from shapleyprio.service.metrics import Metrics
from shapleyprio.service.moves import called
from shapleyprio.service.report import Opening
from shapleyprio.serving import Site
from shapleyprio.serving.askers import Askers
from shapleyprio.serving.questions import Questions
from shapleyprio.slurm.access import CommandLineAccess
from shapleyprio.slurm.port import Slurm, SlurmUnavailableError
from shapleyprio.store import ClusterStore, Journal, Store, StoreError
from shapleyprio.wording import visible

log = structlog.get_logger(__name__)


@click.command
@config_option
@click.option("--once", is_flag=True, help="Run one cycle and exit.")
@click.option(
    "--standby",
    is_flag=True,
    help="While another daemon steers, wait, and take over when it stops, dies or freezes.",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Steer even instead of a daemon with a journal on a host that is gone for good.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what would be done; write nothing into Slurm or into the store.",
)
@click.option("--verbose", is_flag=True, help="With --dry-run: list every single write.")
@json_option
def command(
    config_path: Path,
    *,
    once: bool,
    standby: bool,
    take_over: bool,
    dry_run: bool,
    verbose: bool,
    json_file: Path | None,
) -> None:
    """Observe Slurm, rank the organizations and push their priorities, until stopped.

    SIGTERM finishes the running cycle and stops; SIGHUP reads the configuration anew and keeps
    the old one if the new one is not good.

    One daemon steers a cluster at a time. Where another one does already, a second one ends with
    exit code 6, or with --standby waits for its turn.

    With store.journal it goes on while the store is away, and nobody takes over from it meanwhile.
    If its host is lost, say so once by --take-over elsewhere.

    With --dry-run nothing is changed: the cycles work on a private copy of the store, made under
    TMPDIR and deleted at the end. They need only read the store, and disturb no daemon that
    steers meanwhile. Each one shows the ranking, a summary of every organization, what differs
    from the last cycle in the store, and how much would be written. With the --config of another
    file it shows what that would change.
    """
    shows = verbose or json_file is not None
    _refuse(once=once, standby=standby, take_over=take_over, dry_run=dry_run, shows=shows)
    config = load(config_path)
    _set_up_logging(config)
    slurm = connect(config)
    cluster = cluster_of(config, slurm) if once else _await_cluster(config, slurm)

    def show(forecasts: Sequence[Forecast]) -> None:
        if write_json(json_file, alone([one.as_json(verbose=verbose) for one in forecasts])):
            for forecast in forecasts:
                render(standard_output(), forecast, verbose=verbose)

    ledgers = [segment.ledger for segment in segments_of(config, cluster)]
    with ExitStack() as stack:
        dry: DryRun | None = None
        if dry_run:
            stack.enter_context(termination_unwinds())
            dry = stack.enter_context(rehearse(config.store.url, ledgers, show))
            store, url = dry.store, dry.url
            journal = None  # the daemon beside it has it
        else:
            journal = stack.enter_context(journal_of(config, create=True))
            opened = stack.enter_context(Store.open(config.store.url, create=True))
            store = opened.cluster(cluster)
            url = config.store.url

        lease = Lease(store, seconds=config.service.lease, journal=journal, take_over=take_over)
        metrics = Metrics(ledgers[0])
        # who runs no second cycle waits for the estimate of the first
        patience = config.estimation.time_limit if once else PATIENCE_SECONDS
        gauges = EstimateGauges(metrics.registry)
        cycles = _Cycles(config, lease.store, journal, gauges, url, patience)
        stack.callback(cycles.stop)

        drift = LiveDrift(lease.store, url, metrics)
        site = Site(
            metrics.registry,
            store,
            check=lambda new: check(new, connect(new), int(time.time())),
            # a dry run leaves its addresses to the daemon beside it, and knows what will not come
            questions=None if dry_run else partial(_questions, config, store),
            drift_trouble=lambda: drift.trouble,
            retries=not dry_run,
        )
        daemon = Daemon(
            config,
            DaemonParts(
                read_config=lambda: load(config_path),
                make_cycles=partial(cycles.make, quiet=dry_run),
                metrics=metrics,
                site=site,
                lease=lease,
                standby=standby,
                drift=drift,
                dry_run=dry,
            ),
        )
        if once:
            daemon.run_once()
        elif not daemon.run():
            stack.close()
            os._exit(EXIT_CODES[StoreError])  # a thread waits for the store, and would keep us


class _Cycles:
    """Makes what runs the cycles, for each ledger of the cluster.

    Args:
        config: to begin with; its cluster is known.
        store: of the cluster.
        journal: with which they go on while the store is away; None if there is none.
        gauges: where estimates are shown.
        url: of the store.
        patience: seconds for which a cycle waits for an estimate.
    """

    def __init__(
        self,
        config: Config,
        store: ClusterStore,
        journal: Journal | None,
        gauges: EstimateGauges,
        url: str,
        patience: float,
    ) -> None:
        self._config = config
        self._store = store
        self._journal = journal
        self._gauges = gauges
        self._url = url
        self._patience = patience
        self._estimates: dict[str, LiveEstimates] = {}

    def make(self, config: Config, *, quiet: bool) -> list[Cycle]:
        """Makes them from a configuration; quiet ones do not say that a ledger is opened."""
        cluster = cluster_behind(self._store.cluster)
        slurm = connect(config, cluster)
        if config is not self._config:
            cluster_of(config, slurm)
        cycles = []
        for segment in segments_of(config, cluster):
            own, store = segment.configured(config), self._store.ledger(segment.ledger)
            estimates = self._estimates_of(store)
            opening = (lambda _: None) if quiet else partial(_log_opening, own)
            cycles.append(
                Cycle(
                    own,
                    slurm,
                    store,
                    on_opening=opening,
                    estimates=estimates,
                    journal=self._journal,
                )
            )
        return cycles

    def stop(self) -> None:
        """Ends estimates that are going on."""
        for estimates in self._estimates.values():
            estimates.stop()

    def _estimates_of(self, store: ClusterStore) -> LiveEstimates:
        known = self._estimates.get(store.cluster)
        if known is not None and not known.is_stopped:
            return known
        self._estimates[store.cluster] = LiveEstimates(
            store,
            EstimationWorker(self._url, store.cluster, WORKER),
            EstimateMetrics(store.cluster, self._gauges),
            patience=self._patience,
        )
        return self._estimates[store.cluster]


def _refuse(*, once: bool, standby: bool, take_over: bool, dry_run: bool, shows: bool) -> None:
    """Raises an error about options that do not go together."""
    if shows and not dry_run:
        raise click.UsageError("--verbose and --json go with --dry-run")
    if standby and (once or dry_run):
        raise click.UsageError("--standby goes with neither --once nor --dry-run")
    if take_over and (standby or dry_run):
        raise click.UsageError("--take-over goes with neither --standby nor --dry-run")


def _questions(config: Config, store: ClusterStore, current: Callable[[], Config]) -> Questions:
    access = CommandLineAccess(
        timeout_seconds=config.slurm.timeout, bin_directory=config.slurm.bin_directory
    )
    return Questions(Askers(access), Answers(store, connect, current))


def _log_opening(config: Config, opening: Opening) -> None:
    """Says once what counts from when, who holds how much of it, and how that is corrected."""
    names = [*(member.name for member in config.organizations), NOBODY]

    def shares(held: Mapping[str, int]) -> str:
        shown = [*names, *([LEFT_OUT] if LEFT_OUT in held else [])]
        return ", ".join(f"{called(name)} {held.get(name, 0)}" for name in shown)

    log.info(
        "a new ledger is open",
        counting_from=datetime.fromtimestamp(opening.since, UTC).isoformat(),
        accounts=shares(opening.accounts),
        nodes=shares(opening.nodes),
        to_correct="shapleyprio ownership recount --since DATE",
    )


def _await_cluster(config: Config, slurm: Slurm) -> str:
    """Returns ClusterName as soon as Slurm answers: a daemon that starts before Slurm waits."""

    def report(state: RetryCallState) -> None:
        assert state.outcome is not None
        log.warning("waiting for Slurm", why=str(state.outcome.exception()))
        sdnotify.SystemdNotifier().notify("READY=1\nSTATUS=waiting for Slurm")

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # answered when cycles run
    attempt = Retrying(
        retry=retry_if_exception_type(SlurmUnavailableError),
        wait=wait_fixed(config.service.poll_interval),
        before_sleep=report,
    )
    return attempt(cluster_of, config, slurm)


def _visible(
    _logger: structlog.types.WrappedLogger, _method: str, event: structlog.types.EventDict
) -> structlog.types.EventDict:
    """Writes out what a terminal would obey; only a traceback has lines of its own."""
    return {
        name: "\n".join(map(visible, value.split("\n") if name == "exception" else [value]))
        if isinstance(value, str)
        else value
        for name, value in event.items()
    }


def _set_up_logging(config: Config) -> None:
    renderer: structlog.types.Processor = structlog.dev.ConsoleRenderer(colors=False)
    if config.service.log_format == "json":
        renderer = structlog.processors.JSONRenderer()
    level: int = logging.getLevelNamesMapping()[config.service.log_level.upper()]
    logging.basicConfig(level=logging.WARNING)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _visible,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=PrintLoggerFactory(sys.stderr),
    )
