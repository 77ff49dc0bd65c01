"""`shapleyprio daemon`, and what it prints of a dry run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from shapleyprio.cli.answers import Answers
from shapleyprio.cli.common import alone, termination_unwinds
from shapleyprio.cli.logs import set_up_logging
from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.shared import config_option
from shapleyprio.cli.shown.standings import plan_table, standings_table
from shapleyprio.cli.shown.tables import FittingTable, standard_output
from shapleyprio.common.wording import clock_time, magnitude, signed_duration, visible
from shapleyprio.config import Config, connect, load_config
from shapleyprio.config.segments import segments_of
from shapleyprio.daemon.accounting.moves import holds_nothing, together
from shapleyprio.daemon.answering.status import OrganizationStatus
from shapleyprio.daemon.checking.check import check
from shapleyprio.daemon.drift.live import LiveDrift
from shapleyprio.daemon.estimation.live import PATIENCE_SECONDS
from shapleyprio.daemon.ledgers import cluster_of
from shapleyprio.daemon.pushing.cut_off import journal_of
from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.daemon.serving import Site
from shapleyprio.daemon.serving.questions import Askers, Questions
from shapleyprio.daemon.steering.composition import CycleMaker, await_cluster
from shapleyprio.daemon.steering.daemon import Daemon, DaemonParts
from shapleyprio.daemon.steering.dry_run import DryRun, Forecast, rehearse
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.access import CommandLineAccess
from shapleyprio.store import ClusterStore, Store, StoreError


def render(console: Console, forecast: Forecast, *, verbose: bool) -> None:
    """Prints the ranking, what changes, and how much would be written.

    Args:
        console: where to.
        forecast: what the cycle found.
        verbose: print every write.
    """

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True)

    say(f"{forecast.cluster}, {clock_time(forecast.t)}: a dry run, nothing is written or kept")
    say(_opening(forecast))
    console.print(_table(forecast))
    for line in _changes(forecast):
        say(line)
    for what, change, _ in together(forecast.moves):
        say(f"{visible(what)}: {change} from now on")
    for name in forecast.without_any:
        say(holds_nothing(name))
    if verbose:
        console.print(plan_table(forecast.pushes))
    else:
        say(_writes(forecast))


def _opening(forecast: Forecast) -> str:
    opened = clock_time(forecast.opened)
    if forecast.is_new:
        return f"{forecast.store} has no ledger of this cluster yet: a new one counts from {opened}"
    return f"counted from {opened}"


def _table(forecast: Forecast) -> FittingTable:
    rows = [standing.status for standing in forecast.standings]
    return standings_table(
        rows,
        [
            ("priority", [str(row.priority) for row in rows]),
            ("pending", [str(row.pending) for row in rows]),
            ("running", [str(row.running) for row in rows]),
            ("writes", [str(forecast.writes.get(row.organization, 0)) for row in rows]),
        ],
    )


def _changes(forecast: Forecast) -> Iterator[str]:
    """Yields a line for every organization with another rank than in the last standings."""
    if forecast.since is None:
        return
    left = set(forecast.before)
    lines = []
    for standing in forecast.standings:
        now = standing.status
        left.discard(now.organization)
        before = forecast.before.get(now.organization)
        if before is None:
            lines.append(f"  {now.organization}: new, rank {standing.rank}")
        elif (before.rank, before.status.priority) != (standing.rank, now.priority):
            lines.append(
                f"  {now.organization}: rank {before.rank} → {standing.rank}, points "
                f"{before.status.priority} → {now.priority}, {_scores(before.status, now)}"
            )
    lines += [f"  {name}: no longer there" for name in forecast.before if name in left]
    yield f"against the last cycle in the store, {clock_time(forecast.since)}:"
    yield from lines or ["  every organization keeps its rank and its points"]


def _scores(before: OrganizationStatus, now: OrganizationStatus) -> str:
    if (before.score, now.score) == (before.balance, now.balance):
        balances = (signed_duration(each.balance_per_part) for each in (before, now))
        return f"balance {' → '.join(balances)}"
    return f"score {magnitude(before.score)} → {magnitude(now.score)}"


def _writes(forecast: Forecast) -> str:
    count = len(forecast.pushes)
    if not count:
        return "nothing to write"
    put_back = forecast.writes.get(NOBODY, 0)
    rest = f", {put_back} of them to restore original values" if put_back else ""
    later = f", {forecast.postponed} more left to the next cycle" if forecast.postponed else ""
    return f"{count} write{'s' * (count != 1)}{rest}{later}; --verbose lists them"


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
    help="Steer in place of a daemon with a journal whose host is lost for good.",
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

    SIGTERM finishes the running cycle and stops; SIGHUP reloads the configuration, and keeps
    the old one if the new one is invalid.

    One daemon steers a cluster at a time. A second one ends with exit code 6, or waits with
    --standby.

    With store.journal it continues while the store is away, and no other daemon takes over
    meanwhile. If its host is lost for good, start one elsewhere with --take-over, once.

    With --dry-run nothing is changed: the cycles work on a private copy of the store, made under
    TMPDIR and deleted at the end. They need permission to read the store only, and do not
    disturb a daemon that steers. Each one shows the ranking, a summary of every organization, what
    differs from the last cycle in the store, and how much would be written. With another --config
    it shows what that configuration would change.
    """
    shows = verbose or json_file is not None
    _refuse(once=once, standby=standby, take_over=take_over, dry_run=dry_run, shows=shows)
    config = load_config(config_path)
    set_up_logging(config)
    slurm = connect(config)
    cluster = cluster_of(config, slurm) if once else await_cluster(config, slurm)

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
        foresees = not (once or dry_run)
        cycles = CycleMaker(
            config, lease.store, journal, metrics, url, patience, forecasts=foresees
        )
        stack.callback(cycles.stop)

        drift = LiveDrift(lease.store, url, metrics)
        site = Site(
            metrics.registry,
            store,
            check=lambda new: check(new, connect(new), int(time.time())),
            # a dry run leaves its addresses to the daemon beside it, and knows what will not come
            questions=None if dry_run else partial(_questions, config, store, cycles),
            drift_trouble=lambda: drift.trouble,
            retries=not dry_run,
        )
        daemon = Daemon(
            config,
            DaemonParts(
                read_config=lambda: load_config(config_path),
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
            os._exit(StoreError.exit_code)  # a thread waits for the store, and would keep us


def _refuse(*, once: bool, standby: bool, take_over: bool, dry_run: bool, shows: bool) -> None:
    """Raises an error about options that do not go together."""
    if shows and not dry_run:
        raise click.UsageError("--verbose and --json go with --dry-run")
    if standby and (once or dry_run):
        raise click.UsageError("--standby does not go with --once or --dry-run")
    if take_over and (standby or dry_run):
        raise click.UsageError("--take-over does not go with --standby or --dry-run")


def _questions(
    config: Config, store: ClusterStore, cycles: CycleMaker, current: Callable[[], Config]
) -> Questions:
    access = CommandLineAccess(
        timeout_seconds=config.slurm.timeout, bin_directory=config.slurm.bin_directory
    )
    return Questions(Askers(access), Answers(store, connect, current, cycles.forecasts_of))
