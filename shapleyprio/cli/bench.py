"""`shapleyprio bench`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from shapleyprio.bench import cycles, steady
from shapleyprio.bench.ingest import OF_RECORDS, ingest
from shapleyprio.bench.measure import Machine, Measurement, machine
from shapleyprio.cli.common import json_option, print_json, sigterm_unwinds
from shapleyprio.cli.extras import packages_needed
from shapleyprio.cli.progress import Told, progress_bars
from shapleyprio.cli.workloads import positive_seconds
from shapleyprio.slurm.port import Channel

PARTS = ("cycle", "ingest", "steady", "replay", "all", "slurm")
MOST_ORGANIZATIONS = 16
MIN_WIDTH = 40
"""Of the text; where it does not fit, terminals wrap lines."""

WIDEST_TABLE = 1_000
PENDING = 5_000
MOST_PENDING = 100_000
Bar = Callable[[str, int | None], Told]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line.

    Attributes:
        part: of `PARTS`.
        records: how many to ingest.
        logs: directory with real logs; None to do without.
        most_organizations: how many there are in replays at most.
        pending: how many jobs wait in the real Slurm.
        channels: by which to write into it; empty for all.
        poll_intervals: seconds of the daemon from cycle to cycle.
    """

    part: str
    records: int
    logs: Path | None
    most_organizations: int
    pending: int
    channels: tuple[str, ...]
    poll_intervals: tuple[int, ...]


def parse_intervals(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[int, ...]:
    """Reads positive durations."""
    return tuple(positive_seconds(text, examples="30s or 5m") for text in texts)


@click.command
@click.argument("part", type=click.Choice(PARTS), default="all")
@json_option
@click.option(
    "--records",
    type=click.IntRange(min=1),
    default=OF_RECORDS,
    show_default=True,
    help="How many accounting records to ingest; the targets are meant for the default.",
)
@click.option(
    "--logs",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIRECTORY",
    help="Real logs to replay, with their names in the Parallel Workloads Archive.",
)
@click.option(
    "--most-organizations",
    type=click.IntRange(min=1),
    default=MOST_ORGANIZATIONS,
    metavar="K",
    show_default=True,
    help="Replay ref with so many at most; the largest takes minutes.",
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
    type=click.Choice([channel.value for channel in Channel]),
    help="With slurm: how to write priorities; give it several times.  [default: all]",
)
@click.option(
    "--poll-interval",
    "poll_intervals",
    multiple=True,
    callback=parse_intervals,
    default=("10s", "30s", "60s"),
    show_default=True,
    metavar="TIME",
    help="With slurm: from one cycle of the daemon to the next; give it several times.",
)
def command(*, as_json: bool, **options: Any) -> None:
    """Measure speed and memory on this machine, against the targets.

    \b
    cycle   cycles over 10,000 pending and 1,000 running jobs of the simulated Slurm
    ingest  accounting records, as lines of sacct, into an SQLite store
    steady  cycles with a short and with a long past in the store
    replay  ref for more and more organizations, the usual policies, reading logs;
            needs the packages of shapleyprio[replay]
    all     all of these (the default)
    slurm   what the daemon costs a private real Slurm, which is booted for that: its
            calls, how soon squeue -j is answered meanwhile, how soon new jobs have
            their priority; needs the packages of shapleyprio[trial] and some 20 minutes

    Needs neither a configuration nor a cluster.
    """  # noqa: D301  # click wants the backspace itself
    request = Request(**options)
    if request.part in {"replay", "all"}:  # before anything is measured in vain
        tell_what_is_left_out(request.logs)
    try:
        with (
            sigterm_unwinds(),
            # a stopped Slurm may still be writing its last words
            tempfile.TemporaryDirectory(
                prefix="shapleyprio-bench-", ignore_cleanup_errors=True
            ) as folder,
        ):
            measured = list(measure(request, Path(folder)))
    except KeyboardInterrupt:
        sys.exit(130)
    here = machine()
    if as_json:
        told = [asdict(one) | {"met": one.met} for one in measured]
        print_json({"machine": asdict(here), "measurements": told})
    else:
        render(Console(), here, measured)


def tell_what_is_left_out(logs: Path | None) -> None:
    """Tells which replays cannot be measured here.

    Raises:
        ReplayError: none can, for packages are missing.
    """
    with packages_needed("bench", "replay"):
        from shapleyprio.bench.replay import left_out
    for line in left_out(logs):
        click.echo(f"shapleyprio: {line}", err=True)


def measure(request: Request, folder: Path) -> Iterator[Measurement]:
    """Runs one part of the benchmarks, or all that need no Slurm.

    Args:
        request: which, and how.
        folder: for stores; it needs half a gigabyte for a million records.
    """
    with progress_bars() as bar:
        if request.part == "slurm":
            yield from measure_slurm(request, folder, bar)
            return
        if request.part in {"cycle", "all"}:
            yield from cycles.cycles(folder, bar("cycles", 2 * cycles.RUNS))
        if request.part in {"ingest", "steady", "all"}:
            yield from measure_store(request, folder, bar)
        if request.part in {"replay", "all"}:
            from shapleyprio.bench.replay import replay

            yield from replay(folder, request.logs, request.most_organizations, bar)


def measure_store(request: Request, folder: Path, bar: Bar) -> Iterator[Measurement]:
    """Fills a store and runs cycles on it, or one of both."""
    large_url, small_url = (f"sqlite:///{folder / name}.db" for name in ("large", "small"))
    records = request.records
    ingested = ingest(large_url, records, bar("ingesting", records))
    if request.part != "steady":
        yield from ingested
    if request.part != "ingest":
        ingest(small_url, steady.SMALL, bar("a short past", steady.SMALL))
        done = bar("steady cycles", steady.RUNS)
        yield from steady.steady(small_url, large_url, records, done)


def measure_slurm(request: Request, folder: Path, bar: Bar) -> Iterator[Measurement]:
    """Boots a private real Slurm and measures there.

    Raises:
        SlurmError: there cannot be one here, or something of it did not work.
        ReplayError: packages are missing.
    """
    with packages_needed("bench", "trial"):
        from shapleyprio.bench.slurm import install, slurm
    install(lambda line: click.echo(f"shapleyprio: {line}", err=True))
    channels = [Channel(name) for name in request.channels] or list(Channel)
    yield from slurm(folder, request.pending, channels, request.poll_intervals, bar)


def render(console: Console, here: Machine, measured: list[Measurement]) -> None:
    """Prints the table."""
    console.print(f"{here.cores} cores, {here.cpu}, {here.python}", highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="underline")
    table.add_column("part", no_wrap=True)
    table.add_column("what was measured", min_width=MIN_WIDTH)
    for heading in ("runs", "median", "worst", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for one in measured:
        table.add_row(
            one.name,
            one.what,
            str(one.runs),
            _amount(one.value, one.unit),
            _amount(one.worst, one.unit),
            _target(one),
            {True: "met", False: "missed", None: ""}[one.met],
        )
    for column in table.columns:
        if column.no_wrap:  # which rich does not take into account when it measures
            column.min_width = max(len(str(cell)) for cell in column.cells)
    as_wide_as_needed = console.options.update(max_width=WIDEST_TABLE)
    console.width = max(console.width, console.measure(table, options=as_wide_as_needed).minimum)
    console.print(table)


def _target(one: Measurement) -> str:
    if one.above is not None:
        return f"> {_amount(one.above, one.unit)}"
    return "" if one.below is None else f"< {_amount(one.below, one.unit)}"


def _amount(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
