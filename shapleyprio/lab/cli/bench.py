"""`shapleyprio bench`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click
from rich.console import Console

from shapleyprio.cli.common import termination_unwinds
from shapleyprio.cli.logs import log_warnings
from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.refusals import packages_needed, refuse_missing_directories
from shapleyprio.cli.options.shared import count_option
from shapleyprio.cli.shown.progress import progress_bars
from shapleyprio.cli.shown.tables import standard_output, table_of
from shapleyprio.common.wording import three_digits
from shapleyprio.lab.bench.cycle.prune import OF_RECORDS
from shapleyprio.lab.bench.measure import BenchParameters, Machine, Measurement, machine
from shapleyprio.lab.cli.options import OF_A_CLUSTER_SECONDS, poll_interval_option
from shapleyprio.lab.testbed.machine import state_directory
from shapleyprio.slurm.adapters import ADAPTERS
from shapleyprio.slurm.channels import CHANNELS


@dataclass(frozen=True, slots=True)
class BenchPart:
    """What can be measured alone, by the function `measure_PART` of a module.

    Attributes:
        module: below `shapleyprio.lab.bench`, not imported without need.
        needs: the extras with its packages.
        on_logs: whether it is measured on real logs alone.
    """

    module: str
    needs: tuple[str, ...] = ()
    on_logs: bool = False


REPLAY = ("replay",)
PARTS = {
    "cycle": BenchPart("cycle.cycles"),
    "ingest": BenchPart("cycle.prune"),
    "replay": BenchPart("replay.replay", REPLAY),
    "scale": BenchPart("cycle.scale"),
    "pool": BenchPart("cycle.pool"),
    "year": BenchPart("cycle.year", ("replay", "report")),
    "prune": BenchPart("cycle.prune"),
    "estimators": BenchPart("replay.estimators", REPLAY, on_logs=True),
    "predictors": BenchPart("fairness.predictors", REPLAY, on_logs=True),
    "manipulations": BenchPart("fairness.manipulations", REPLAY, on_logs=True),
    "splitting": BenchPart("fairness.splitting", REPLAY, on_logs=True),
    "organizations": BenchPart("fairness.organizations", REPLAY, on_logs=True),
    "peers": BenchPart("replay.peers", REPLAY, on_logs=True),
    "recompute": BenchPart("replay.recompute", REPLAY),
    "exports": BenchPart("replay.exports", REPLAY),
    "slurm": BenchPart("slurm.costs", ("trial",)),
}
ALL = ("cycle", "ingest", "replay")
MOST_ORGANIZATIONS = 16

PENDING = 5_000
MOST_PENDING = 100_000


@click.command
@click.argument("part", type=click.Choice((*PARTS, "all")), default="all", metavar="[PART]")
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
def command(*, part: str, logs: Path | None, json_file: Path | None, **options: Any) -> None:
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
    parts = ALL if part == "all" else (part,)
    refuse_missing_directories(("--json", json_file))
    if "replay" in parts:  # before anything is measured in vain
        print_what_is_left_out(logs)
    log_warnings()
    with (
        termination_unwinds(OF_A_CLUSTER_SECONDS),
        state_directory(None) as folder,
        progress_bars() as bar,
    ):
        asked = BenchParameters(folder=folder, bar=bar, logs=logs, **options)
        measurements = [one for name in parts for one in measure(name, asked)]
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


def measure(part: str, asked: BenchParameters) -> Iterator[Measurement]:
    """Runs one part of the benchmarks.

    Raises:
        click.UsageError: it needs logs, and they were not named.
        ReplayError: packages are missing.
        SlurmError: there cannot be a private Slurm here, or something of it did not work.
    """
    one = PARTS[part]
    if one.on_logs and asked.logs is None:
        raise click.UsageError(f"{part} are measured on real logs; add --logs DIRECTORY")
    with ExitStack() as needed:
        for extra in one.needs:
            needed.enter_context(packages_needed("bench", extra))
        if part == "slurm":
            from shapleyprio.lab.cli.trialling import install

            install()
        yield from resolve_name(f"shapleyprio.lab.bench.{one.module}:measure_{part}")(asked)


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
