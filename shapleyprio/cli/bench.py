"""`shapleyprio bench`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from shapleyprio.bench import cycles, steady
from shapleyprio.bench.ingest import OF_RECORDS, ingest
from shapleyprio.bench.measure import Machine, Measurement, machine
from shapleyprio.cli.common import json_option, print_json

PARTS = ("cycle", "ingest", "steady", "all")


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
def command(part: str, records: int, *, as_json: bool) -> None:
    r"""Measure speed and memory on this machine, against the targets.

    \b
    cycle   cycles over 10,000 pending and 1,000 running jobs of the simulated Slurm
    ingest  accounting records, as lines of sacct, into an SQLite store
    steady  cycles with a short and with a long past in the store
    all     everything (the default)

    Needs neither a configuration nor a cluster.
    """
    with tempfile.TemporaryDirectory(prefix="shapleyprio-bench-") as folder:
        measured = list(measure(part, records, Path(folder)))
    here = machine()
    if as_json:
        told = [asdict(one) | {"met": one.met} for one in measured]
        print_json({"machine": asdict(here), "measurements": told})
    else:
        render(Console(), here, measured)


def measure(part: str, records: int, folder: Path) -> Iterator[Measurement]:
    """Runs one part of the benchmarks, or all.

    Args:
        part: of `PARTS`.
        records: how many to ingest.
        folder: for stores; it needs half a gigabyte for a million records.
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


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int], Callable[[int], None]]]:
    """Makes bars on standard error: what is done and of how much -> how to tell of progress."""
    columns = (TextColumn("{task.description:15}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:

        def bar(what: str, total: int) -> Callable[[int], None]:
            task = progress.add_task(what, total=total)
            return lambda done: progress.update(task, completed=done)

        yield bar


def render(console: Console, here: Machine, measured: list[Measurement]) -> None:
    """Prints the table."""
    console.print(f"{here.cores} cores, {here.cpu}, {here.python}", highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="underline")
    table.add_column("part")
    table.add_column("what was measured")
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
            "" if one.below is None else f"< {one.below:g} {one.unit}",
            {True: "met", False: "missed", None: ""}[one.met],
        )
    console.print(table)


def _amount(value: float, unit: str) -> str:
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
