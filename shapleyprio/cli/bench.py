"""`shapleyprio bench`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from shapleyprio.bench import cycles, steady
from shapleyprio.bench.ingest import OF_RECORDS, ingest
from shapleyprio.bench.measure import Machine, Measurement, machine
from shapleyprio.cli.common import json_option, print_json
from shapleyprio.cli.progress import progress_bars
from shapleyprio.cli.replay import packages_needed

PARTS = ("cycle", "ingest", "steady", "replay", "all")
MOST_ORGANIZATIONS = 16
MIN_WIDTH = 40
"""Of the text; where it does not fit, terminals wrap lines."""

WIDEST_TABLE = 1_000


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
def command(
    part: str, records: int, logs: Path | None, most_organizations: int, *, as_json: bool
) -> None:
    """Measure speed and memory on this machine, against the targets.

    \b
    cycle   cycles over 10,000 pending and 1,000 running jobs of the simulated Slurm
    ingest  accounting records, as lines of sacct, into an SQLite store
    steady  cycles with a short and with a long past in the store
    replay  ref for more and more organizations, the usual policies, reading logs;
            needs the packages of shapleyprio[replay]
    all     everything (the default)

    Needs neither a configuration nor a cluster.
    """  # noqa: D301  # click wants the backspace itself
    if part in {"replay", "all"}:  # before anything is measured in vain
        tell_what_is_left_out(logs)
    with tempfile.TemporaryDirectory(prefix="shapleyprio-bench-") as folder:
        measured = list(measure(part, Path(folder), records, logs, most_organizations))
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
    with packages_needed():
        from shapleyprio.bench.replay import left_out
    for line in left_out(logs):
        click.echo(f"shapleyprio: {line}", err=True)


def measure(
    part: str, folder: Path, records: int, logs: Path | None, most_organizations: int
) -> Iterator[Measurement]:
    """Runs one part of the benchmarks, or all.

    Args:
        part: of `PARTS`.
        folder: for stores; it needs half a gigabyte for a million records.
        records: how many to ingest.
        logs: directory with real logs; None to do without.
        most_organizations: how many there are in replays at most.
    """
    large_url, small_url = (f"sqlite:///{folder / name}.db" for name in ("large", "small"))
    with progress_bars() as bar:
        if part in {"cycle", "all"}:
            yield from cycles.cycles(folder, bar("cycles", 2 * cycles.RUNS))
        if part in {"ingest", "steady", "all"}:
            ingested = ingest(large_url, records, bar("ingesting", records))
            if part != "steady":
                yield from ingested
        if part in {"steady", "all"}:
            ingest(small_url, steady.SMALL, bar("a short past", steady.SMALL))
            done = bar("steady cycles", steady.RUNS)
            yield from steady.steady(small_url, large_url, records, done)
        if part in {"replay", "all"}:
            from shapleyprio.bench.replay import replay

            yield from replay(folder, logs, most_organizations, bar)


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
