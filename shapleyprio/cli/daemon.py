"""`shapleyprio daemon`."""

from __future__ import annotations

import logging
import signal
import sys
import time
from pathlib import Path

import click
import sdnotify
import structlog
from rich.console import Console
from structlog import PrintLoggerFactory
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_fixed

from shapleyprio.cli.common import cluster_of, config_option, connect, load, print_plan
from shapleyprio.config import Config
from shapleyprio.service.check import check
from shapleyprio.service.cycle import Cycle
from shapleyprio.service.daemon import Daemon
from shapleyprio.service.drift import LiveDrift
from shapleyprio.service.lease import Lease, lasting
from shapleyprio.service.metrics import Metrics
from shapleyprio.serving import Site
from shapleyprio.serving.security import read_security
from shapleyprio.slurm.port import Slurm, SlurmUnavailableError
from shapleyprio.store import Store

log = structlog.get_logger(__name__)


@click.command
@config_option
@click.option("--once", is_flag=True, help="Run one cycle and exit.")
@click.option("--dry-run", is_flag=True, help="Account and rank, but write nothing into Slurm.")
def command(config_path: Path, *, once: bool, dry_run: bool) -> None:
    """Observe Slurm, rank the organizations and push their priorities, until stopped.

    SIGTERM finishes the running cycle and stops; SIGHUP reads the configuration anew and keeps
    the old one if the new one is not good. With --dry-run the store is kept up to date, and what
    would be written into Slurm is shown instead.
    """
    config = load(config_path)
    _set_up_logging(config)
    if not once:
        read_security(config.metrics)  # what cannot be served is not to be found out by waiting
    slurm = connect(config)
    cluster = cluster_of(config, slurm) if once else _await_cluster(config, slurm)
    with Store.open(config.store.url, create=True) as store:

        def make_cycle(new: Config) -> Cycle:
            adapter = connect(new)
            if new is not config:  # whose cluster has been asked for above
                cluster_of(new, adapter)
            return Cycle(new, adapter, store, cluster)

        metrics = Metrics(cluster)
        site = Site(
            metrics.registry,
            store,
            cluster,
            check=lambda new: check(new, connect(new), int(time.time())),
        )
        daemon = Daemon(
            config,
            read_config=lambda: load(config_path),
            make_cycle=make_cycle,
            metrics=metrics,
            site=site,
            lease=Lease(store, cluster, seconds=lasting(config.service.poll_interval)),
            drift=LiveDrift(store, cluster, config.store.url, metrics),
            dry_run=dry_run,
        )
        if once:
            report = daemon.run_once()
            if dry_run:
                print_plan(Console(), report.planned)
            return
        daemon.run()


def _await_cluster(config: Config, slurm: Slurm) -> str:
    """ClusterName, as soon as Slurm answers: a daemon that starts before Slurm waits for it."""

    def tell(state: RetryCallState) -> None:
        assert state.outcome is not None
        log.warning("waiting for Slurm", why=str(state.outcome.exception()))
        sdnotify.SystemdNotifier().notify("READY=1\nSTATUS=waiting for Slurm")

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # answered when cycles run
    attempt = Retrying(
        retry=retry_if_exception_type(SlurmUnavailableError),
        wait=wait_fixed(config.service.poll_interval),
        before_sleep=tell,
    )
    return attempt(cluster_of, config, slurm)


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
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=PrintLoggerFactory(sys.stderr),
    )
