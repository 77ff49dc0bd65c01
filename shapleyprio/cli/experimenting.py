"""What `shapleyprio experiment` does: make the cells, run them, sum up, show and write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table as RichTable

from shapleyprio.cli.common import print_json
from shapleyprio.cli.experiment import SLURM_WORKERS, Request
from shapleyprio.cli.replaying import WIDEST_TABLE, plain_table, short
from shapleyprio.cli.reporting import publish
from shapleyprio.cli.workloads import STDOUT
from shapleyprio.experiment.cells import Experiment, ExperimentError, Row, Table
from shapleyprio.experiment.cluster import on_dask
from shapleyprio.experiment.general import experiment_of
from shapleyprio.experiment.keeping import Kept
from shapleyprio.experiment.logs import logs_among
from shapleyprio.experiment.presets import PRESETS
from shapleyprio.experiment.results import as_json, check_writable, write_rows
from shapleyprio.experiment.running import Progress, Runner, on_cores, run
from shapleyprio.experiment.summary import Line, summary_of
from shapleyprio.replay.results import whole_file

if TYPE_CHECKING:
    from shapleyprio.report import Page

NOTHING = "-"

Group = Sequence[tuple[str, str | int | float | None]]
"""(column, value) of what the lines of a group have in common."""


def experiment(request: Request) -> None:
    """Does what was asked for."""
    if request.results_file is not None:
        check_writable(request.results_file)
    runner = runner_for(request)
    made = made_of(request)
    kept = None if request.keep is None else Kept.of(request.keep, made)
    with progress_bar(len(made.cells)) as progress:
        rows = run(made, runner, kept=kept, progress=progress)
    tell(request, made, rows)
    if all(row[made.value] is None for row in rows):
        raise ExperimentError("not one value could be had, for the reason that is told above")


def runner_for(request: Request) -> Runner:
    """Where the cells run."""
    if request.dask is None:
        return on_cores(request.cores_or_all)
    return on_dask(request.dask, request.workers or SLURM_WORKERS)


def made_of(request: Request) -> Experiment:
    """The experiment that was asked for."""
    if request.preset is not None:
        made = PRESETS[request.preset](
            logs_among(map(Path, request.logs)),
            windows=request.windows,
            seed=request.seed,
            exhibits=request.exhibits,
        )
        asked = {"windows": request.windows, "exhibits": request.exhibits, "seed": request.seed}
        return replace(made, parameters=asked)
    given: dict[str, Any] = {
        "policies": request.policies,
        "windows": request.windows,
        "length": request.length,
        "deals": request.deals,
        "organizations": request.organizations,
        "shares": request.shares,
        "processors": request.processors,
        "wide": request.wide,
        "backfill": request.backfill,
    }
    said = {name: value for name, value in given.items() if value}
    return experiment_of(request.logs, seed=request.seed, **said)


@contextmanager
def progress_bar(cells: int) -> Iterator[Progress]:
    """A bar on standard error with the time left, where that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        task = bars.add_task("cells", total=cells)

        def progress(finished: int, kept: int) -> None:
            if finished == kept:  # they took no time, so they must not count as speed
                bars.reset(task, completed=kept)
            bars.update(task, completed=finished)

        yield progress


def tell(request: Request, made: Experiment, rows: Sequence[Row]) -> None:
    """Writes what is to be written, and shows the rest."""
    lines = summary_of(made, rows, seed=request.seed)
    publish(request.report, lambda: page_of(request, made, rows, lines))
    if request.results_file is not None:
        write_rows(request.results_file, rows)
    if request.json_file == STDOUT:
        print_json(as_json(made, rows, lines))
        return
    if request.json_file is not None:
        with whole_file(request.json_file) as file:
            json.dump(as_json(made, rows, lines), file, indent=2, ensure_ascii=False)
            file.write("\n")
    render(Console(highlight=False), made, rows, lines)


def render(console: Console, made: Experiment, rows: Sequence[Row], lines: Sequence[Line]) -> None:
    """Prints the summary, the experiment's own tables, and what is to be known about them."""
    tables = [(title_of(group), summary_table(made, of)) for group, of in groups_of(lines)]
    own = made.tables(rows) if made.tables is not None else ()
    tables += [(table.title, own_table(table)) for table in own]
    wide = console.options.update(max_width=WIDEST_TABLE)
    needed = (console.measure(table, options=wide).maximum for _, table in tables)
    console.width = max(console.width, *needed, 1)  # nothing is cut off; terminals wrap
    console.print(f"{made.name}: {made.description}", markup=False, soft_wrap=True)
    notes = dict.fromkeys(note for table in own for note in table.notes)
    for title, table in tables:
        console.print(f"\n{title}", markup=False, soft_wrap=True)
        console.print(table)
    for note in (*notes, *failures(made, rows), *made.notes):
        console.print(f"\n{note}", markup=False, soft_wrap=True)


def page_of(request: Request, made: Experiment, rows: Sequence[Row], lines: Sequence[Line]) -> Page:
    """The report."""
    from shapleyprio.report.experiment_page import experiment_page

    groups = groups_of(lines)
    own = made.tables(rows) if made.tables is not None else ()
    alike = set.intersection(*(set(group) for group, _ in groups)) if len(groups) > 1 else set()
    return experiment_page(
        made,
        rows,
        {title_of([one for one in group if one not in alike]): of for group, of in groups},
        tables=own,
        notes=[*failures(made, rows), *made.notes],
        options={
            name: _written(value) for name, value in made.parameters.items() if value is not None
        },
        command=request.report.command,
    )


def _written(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def groups_of(lines: Sequence[Line]) -> list[tuple[Group, list[Line]]]:
    """What the lines of each group have in common, and the lines."""
    found = groupby(lines, key=lambda line: list(line.group.items())[:-1])
    return [(group, list(of)) for group, of in found]


def title_of(group: Group) -> str:
    """What a group has in common: names as they are, numbers with what they count."""
    return ", ".join(
        str(value) if isinstance(value, str) else f"{column} {value}" for column, value in group
    )


def summary_table(made: Experiment, lines: Sequence[Line]) -> RichTable:
    """A line for each of those that are compared."""
    table = plain_table(made.by[-1])
    failed = any(line.failed for line in lines)
    headings = ["mean", "95 % interval", "st. dev.", "median", "wins", "ties", "count"]
    for heading in [*headings, "failed"] if failed else headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for line in lines:
        interval = [] if line.low is None or line.high is None else [line.low, line.high]
        table.add_row(
            str(line.group[made.by[-1]]),
            shown(line.mean),
            " to ".join(map(short, interval)) or NOTHING,
            shown(line.deviation),
            shown(line.median),
            *(f"{count:,}" for count in (line.wins, line.ties, line.count)),
            *([f"{line.failed:,}"] if failed else []),
        )
    return table


def own_table(table: Table) -> RichTable:
    """A preset's table as it is printed."""
    first, *others = table.header
    printed = plain_table(first)
    for heading in others:
        printed.add_column(heading, justify="right", no_wrap=True)
    for line in table.lines:
        printed.add_row(*map(shown, line))
    return printed


def shown(value: str | float | None) -> str:
    """Text as it is, whole numbers whole, others with a few digits."""
    if isinstance(value, int):
        return f"{value:,}"
    return NOTHING if value is None else value if isinstance(value, str) else short(value)


def failures(made: Experiment, rows: Sequence[Row]) -> list[str]:
    """How many values could not be had, and why the first one could not."""
    failed = [row for row in rows if row[made.value] is None]
    if not failed:
        return []
    why = next((row["problem"] for row in failed if row.get("problem")), "")
    return [f"{len(failed):,} values could not be had" + (f", such as: {why}" if why else "")]
