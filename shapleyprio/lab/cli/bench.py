"""`shapleyprio bench`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from shapleyprio.cli.common import termination_unwinds
from shapleyprio.cli.logs import log_warnings
from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.refusals import packages_needed, refuse_missing_directories
from shapleyprio.cli.options.shared import count_option
from shapleyprio.cli.shown.progress import ProgressBar, progress_bars
from shapleyprio.cli.shown.tables import standard_output, table_of
from shapleyprio.common.wording import three_digits
from shapleyprio.lab.bench.cycle import cycles, pool, prune, scale, year
from shapleyprio.lab.bench.cycle.prune import OF_RECORDS, ingest
from shapleyprio.lab.bench.measure import Machine, Measurement, machine
from shapleyprio.lab.cli.options import OF_A_CLUSTER_SECONDS, poll_interval_option
from shapleyprio.lab.cli.parameters import BenchParameters
from shapleyprio.lab.testbed.machine import state_directory
from shapleyprio.slurm.adapters import ADAPTERS
from shapleyprio.slurm.channels import CHANNELS

ON_LOGS = ("estimators", "predictors", "manipulations", "splitting", "organizations")
"""Parts that are measured on real logs alone."""

OF_CYCLES = ("scale", "pool", "year")
"""Parts that are cycles for minutes."""

OF_REPLAY = ("peers", "recompute", "exports")
"""Other parts of the offline replay."""

PARTS = (
    "cycle",
    "ingest",
    "replay",
    "all",
    *OF_CYCLES,
    "prune",
    *ON_LOGS,
    *OF_REPLAY,
    "slurm",
)
MOST_ORGANIZATIONS = 16

PENDING = 5_000
MOST_PENDING = 100_000


@click.command
@click.argument("part", type=click.Choice(PARTS), default="all", metavar="[PART]")
@json_option
@count_option(
    "--records",
    default=OF_RECORDS,
    help="How many accounting records to ingest; the targets are meant for the default.",
)
@click.option(
    "--store",
    "stores",
    multiple=True,
    metavar="URL",
    help="With prune: an empty database; give it several times.  [default: an SQLite file]",
)
@click.option(
    "--logs",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIRECTORY",
    help="Real logs to replay, with their names in the Parallel Workloads Archive.",
)
@count_option(
    "--most-organizations",
    default=MOST_ORGANIZATIONS,
    metavar="K",
    help="Replay ref with at most this many (20 at most); the largest takes minutes.",
)
@click.option(
    "--pending",
    type=click.IntRange(1, MOST_PENDING),
    default=PENDING,
    metavar="N",
    show_default=True,
    help="With slurm: how many jobs wait.",
)
@click.option(
    "--channel",
    "channels",
    multiple=True,
    type=click.Choice(list(CHANNELS)),
    help="With slurm: how to write priorities; give it several times.  [default: all]",
)
@click.option(
    "--adapter",
    "adapters",
    multiple=True,
    type=click.Choice([name for name in ADAPTERS if name != "auto"]),
    help="With slurm: measure the calls of this adapter alone; give it several times to see them "
    "side by side.",
)
@poll_interval_option(
    "poll_intervals",
    default=("10s", "30s", "60s"),
    help="With slurm: from one cycle of the daemon to the next; give it several times.",
)
def command(*, json_file: Path | None, **options: Any) -> None:
    """Measure speed and memory on this machine, against the targets. PART is one of these.

    \b
    cycle   cycles over 10,000 pending and 1,000 running jobs of the simulated Slurm
    ingest  accounting records, as lines of sacct, into an SQLite store
    replay  ref for more and more organizations, the usual policies, reading logs;
            needs the packages of shapleyprio[replay]
    all     all of these (the default)
    scale   cycles over 100,000 pending and 50,000 running jobs of 100 organizations on 5,000
            nodes, with all that Slurm's commands print of them; some minutes
    pool    what the database carries for 10 clusters in a pool, with 100 organizations and
            1,000,000 jobs a day: transactions, rows and bytes of a cluster in an hour; minutes
    year    400 days of the simulated Slurm with a cycle every four hours, members that come
            and go, and each month's report: whether the store, memory and processor time
            level off, and the ledger against a literal one; needs the packages of
            shapleyprio[report], some 10 minutes
    prune   --records of the past, and as many standings and pushes, of which a horizon of
            one day leaves nearly none: the cycle that cuts it, and pruning; on each --store;
            minutes
    estimators  how far Shapley values estimated from few coalitions are off, on --logs,
            beside random orderings and KernelSHAP of shapiq if it is installed; some minutes
    predictors  how fair live is with each predictor, on contended windows of --logs
    manipulations  what an organization of --logs gains by splitting, merging, delaying or
            padding its jobs, by wrong time limits, and by useless jobs; some minutes
    splitting  how long jobs wait if an organization of --logs becomes two members, one of
            which brings nothing and has its urgent jobs; some minutes
    peers   the first jobs of two of --logs by the replay, AccaSim and Lapis, which pip
            installs for that: jobs in a second, memory, and whether they start at the same seconds
    recompute  Shapley values of a month of 100,000 jobs, whole ones and cut ones, from
            scratch and again when an hour was added; seconds of one core, some minutes
    exports  reading 10,000,000 lines of sacct, plain and compressed by xz and by zstd; some
            minutes, and 3 GB of disk in TMPDIR
    organizations  how exact estimated contributions of whole jobs are among 5 to 50
            organizations, on contended windows of --logs, against ref or against many more
            coalitions; some minutes
    slurm   what the daemon costs a private real Slurm, which is booted for that: seconds
            and calls of its cycles, how soon new jobs have their priority (polled for, and
            at submission); needs the packages of shapleyprio[trial] and up to 20 minutes;
            with --adapter instead how long an adapter's calls take, some 5 minutes

    Needs neither a configuration nor a cluster.
    """  # noqa: D301  # click wants the backspace itself
    parameters = BenchParameters(**options)
    refuse_missing_directories(("--json", json_file))
    if parameters.part in {"replay", "all"}:  # before anything is measured in vain
        print_what_is_left_out(parameters.logs)
    log_warnings()
    with (
        termination_unwinds(OF_A_CLUSTER_SECONDS),
        state_directory(None) as folder,
    ):
        measurements = list(measure(parameters, folder))
    here = machine()
    rows = [asdict(measurement) | {"met": measurement.met} for measurement in measurements]
    if write_json(json_file, {"machine": asdict(here), "measurements": rows}):
        render(standard_output(), here, measurements)


def print_what_is_left_out(logs: Path | None) -> None:
    """Prints which replays cannot be measured here.

    Raises:
        ReplayError: none can, for packages are missing.
    """
    with packages_needed("bench", "replay"):
        from shapleyprio.lab.bench.replay.replay import left_out
    for line in left_out(logs):
        click.echo(f"shapleyprio: {line}", err=True)


def measure(parameters: BenchParameters, folder: Path) -> Iterator[Measurement]:
    """Runs one part of the benchmarks, or all that need no Slurm.

    Args:
        parameters: which, and how.
        folder: for stores; it needs half a gigabyte for a million records.
    """
    with progress_bars() as bar:
        if parameters.part == "slurm":
            yield from measure_slurm(parameters, folder, bar)
            return
        if parameters.part in ON_LOGS:
            yield from measure_on_logs(parameters.part, parameters.logs, bar)
            return
        if parameters.part in OF_REPLAY:
            yield from measure_replays(parameters, folder, bar)
            return
        if parameters.part in OF_CYCLES:
            yield from measure_cycles(parameters.part, folder, bar)
            return
        if parameters.part == "prune":
            yield from measure_pruning(parameters, folder, bar)
            return
        if parameters.part in {"cycle", "all"}:
            yield from cycles.cycles(folder, bar("cycles", 2 * cycles.RUNS))
        if parameters.part in {"ingest", "all"}:
            records = parameters.records
            yield from ingest(f"sqlite:///{folder / 'past.db'}", records, bar("ingesting", records))
        if parameters.part in {"replay", "all"}:
            from shapleyprio.lab.bench.replay.replay import replay

            yield from replay(folder, parameters.logs, parameters.most_organizations, bar)


def measure_cycles(part: str, folder: Path, bar: ProgressBar) -> Iterator[Measurement]:
    """Measures a part of OF_CYCLES.

    Raises:
        ReplayError: packages are missing.
    """
    if part == "scale":
        yield from scale.scale(folder, bar("cycles", scale.cycles_in_all()))
    elif part == "pool":
        yield from pool.pool(folder, bar("cycles", pool.cycles_in_all()))
    else:
        with packages_needed("bench", "replay"), packages_needed("bench", "report"):
            import shapleyprio.cli.offline.monthly  # noqa: F401  # which reports need
        yield from year.year(folder, bar("days", year.DAYS))


def measure_pruning(
    parameters: BenchParameters, folder: Path, bar: ProgressBar
) -> Iterator[Measurement]:
    """Cuts the horizon of each store, or of an SQLite file."""
    for url in parameters.stores or (f"sqlite:///{folder / 'past.db'}",):
        yield from prune.prune(url, parameters.records, bar("accounting", parameters.records))


def measure_on_logs(part: str, logs: Path | None, bar: ProgressBar) -> Iterator[Measurement]:
    """Measures on windows of real logs.

    Raises:
        click.UsageError: the logs were not named.
        ReplayError: packages are missing.
    """
    real_logs = needed_logs(part, logs)
    with packages_needed("bench", "replay"):
        from shapleyprio.lab.bench.fairness import (
            manipulations,
            organizations,
            predictors,
            splitting,
        )
        from shapleyprio.lab.bench.replay import estimators
    parts = {
        "estimators": estimators.measure,
        "predictors": predictors.measure_predictors,
        "manipulations": manipulations.measure_manipulations,
        "splitting": splitting.measure_splitting,
        "organizations": organizations.measure_organizations,
    }
    yield from parts[part](real_logs, bar)


def measure_replays(
    parameters: BenchParameters, folder: Path, bar: ProgressBar
) -> Iterator[Measurement]:
    """Measures a part of OF_REPLAY.

    Raises:
        click.UsageError: the logs were not named.
        ReplayError: packages are missing.
    """
    with packages_needed("bench", "replay"):
        from shapleyprio.lab.bench.replay import exports, peers, recompute
    if parameters.part == "peers":
        logs = needed_logs(parameters.part, parameters.logs)
        yield from peers.measure_peers(logs, folder, bar)
    elif parameters.part == "recompute":
        yield from recompute.measure_recompute(bar)
    else:
        yield from exports.measure_exports(folder, bar)


def needed_logs(part: str, logs: Path | None) -> Path:
    """Returns the directory of the logs.

    Raises:
        click.UsageError: it was not named.
    """
    if logs is None:
        raise click.UsageError(f"{part} are measured on real logs; add --logs DIRECTORY")
    return logs


def measure_slurm(
    parameters: BenchParameters, folder: Path, bar: ProgressBar
) -> Iterator[Measurement]:
    """Boots a private real Slurm and measures there.

    Raises:
        SlurmError: there cannot be one here, or something of it did not work.
        ReplayError: packages are missing.
    """
    with packages_needed("bench", "trial"):
        from shapleyprio.lab.bench.slurm.costs import slurm, slurm_adapters
        from shapleyprio.lab.cli.trialling import install
    install()
    if parameters.adapters:
        yield from slurm_adapters(folder, parameters.pending, parameters.adapters, bar)
        return
    channels = parameters.channels or tuple(CHANNELS)
    yield from slurm(folder, parameters.pending, channels, parameters.poll_intervals, bar)


def render(console: Console, here: Machine, measurements: list[Measurement]) -> None:
    """Prints the table."""
    console.print(f"{here.cores} cores, {here.cpu}, {here.python}", highlight=False)
    rows = [
        (
            one.name,
            one.what,
            str(one.runs),
            _amount(one.value, one.unit),
            _amount(one.worst, one.unit),
            _target(one),
            {True: "met", False: "missed", None: ""}[one.met],
        )
        for one in measurements
    ]
    what = "what was measured"
    headings = ("part", what, "runs", "median", "worst", "target", "")
    console.print(table_of(headings, rows, kept=("median", ""), texts=(what,)))


def _target(measurement: Measurement) -> str:
    if measurement.above is not None:
        return f"> {_amount(measurement.above, measurement.unit)}"
    return "" if measurement.below is None else f"< {_amount(measurement.below, measurement.unit)}"


def _amount(value: float, unit: str) -> str:
    return f"{three_digits(value)} {unit}"
