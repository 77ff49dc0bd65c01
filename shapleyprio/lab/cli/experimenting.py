"""The work of `shapleyprio experiment`: make the cells, run them, sum up, show and write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from shapleyprio.cli.options.json_output import write_json
from shapleyprio.cli.options.refusals import remedies_of
from shapleyprio.cli.options.reporting import publish
from shapleyprio.cli.shown.tables import FittingTable, standard_output, table_of
from shapleyprio.common.errors import Remedy, ReplayError
from shapleyprio.common.wording import MISSING, cell, decimal, percent, whole
from shapleyprio.lab.cli.parameters import ExperimentParameters
from shapleyprio.lab.experiment.cells import (
    Experiment,
    ExperimentError,
    ExperimentTable,
    PresetParameters,
    Row,
    preset_experiment,
)
from shapleyprio.lab.experiment.forecasting import forecasts_experiment
from shapleyprio.lab.experiment.general import windows_experiment
from shapleyprio.lab.experiment.keeping import ResultCache
from shapleyprio.lab.experiment.logs import logs_among
from shapleyprio.lab.experiment.results import Line, as_json, check_writable, summary_of, write_rows
from shapleyprio.lab.experiment.running import CellsProgress, run

if TYPE_CHECKING:
    from shapleyprio.reports import Page

Group = Sequence[tuple[str, str | int | float | None]]
"""(column, value) of what the lines of a group have in common."""


def experiment(parameters: ExperimentParameters) -> None:
    """Runs an experiment, and shows and writes the results."""
    if parameters.results_file is not None:
        check_writable(parameters.results_file)
    made = made_of(parameters)
    kept = None if parameters.keep is None else ResultCache.of(parameters.keep, made)
    with progress_bar(len(made.cells)) as progress:
        rows = run(made, parameters.cores, kept=kept, progress=progress)
    write_and_show(parameters, made, rows)
    if all(row[made.value] is None for row in rows):
        raise ExperimentError("no value could be computed, for the reason above")


def made_of(parameters: ExperimentParameters) -> Experiment:
    """Returns the experiment that the parameters describe."""
    if parameters.preset is not None:
        of_preset = PresetParameters(
            logs_among(map(Path, parameters.logs)),
            windows=parameters.windows,
            seed=parameters.seed,
            exhibits=parameters.exhibits,
        )
        made = preset_experiment(parameters.preset, of_preset)
        asked = {
            "windows": parameters.windows,
            "exhibits": parameters.exhibits,
            "seed": parameters.seed,
        }
        return replace(made, parameters=asked)
    if parameters.forecasts is not None:
        return forecasts_experiment(parameters.logs, parameters.general, parameters.forecasts)
    return windows_experiment(parameters.logs, parameters.general)


@contextmanager
def progress_bar(cells: int) -> Iterator[CellsProgress]:
    """Shows a bar on standard error with the time left, where that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        task = bars.add_task("cells", total=cells)

        def progress(finished: int, kept: int) -> None:
            if finished == kept:  # they took no time, so they must not count as speed
                bars.reset(task, completed=kept)
            bars.update(task, completed=finished)

        yield progress


def write_and_show(parameters: ExperimentParameters, made: Experiment, rows: Sequence[Row]) -> None:
    """Writes the files, and shows the tables."""
    lines = summary_of(made, rows, seed=parameters.seed)
    publish(parameters.report, lambda: page_of(parameters, made, rows, lines))
    if parameters.results_file is not None:
        write_rows(parameters.results_file, rows)
    if parameters.json_file is None or write_json(parameters.json_file, as_json(made, rows, lines)):
        render(standard_output(highlight=False), made, rows, lines)


def render(console: Console, made: Experiment, rows: Sequence[Row], lines: Sequence[Line]) -> None:
    """Prints the summary, the experiment's own tables, and what is to be known about them."""
    tables = [(title_of(group), summary_table(made, of)) for group, of in groups_of(lines)]
    own = made.tables(rows) if made.tables is not None else ()
    tables += [(table.title, own_table(table)) for table in own]
    console.print(f"{made.name}: {made.description}", soft_wrap=True)
    notes = dict.fromkeys(note for table in own for note in table.notes)
    for title, table in tables:
        console.print(f"\n{title}", soft_wrap=True)
        console.print(table)
    for note in (*notes, *failures(made, rows), *made.notes):
        console.print(f"\n{note}", soft_wrap=True)


def page_of(
    parameters: ExperimentParameters, made: Experiment, rows: Sequence[Row], lines: Sequence[Line]
) -> Page:
    """Returns the report."""
    from shapleyprio.lab.experiment.pages.experiment_page import experiment_page

    groups = groups_of(lines)
    own = made.tables(rows) if made.tables is not None else ()
    alike = set.intersection(*(set(group) for group, _ in groups)) if len(groups) > 1 else set()
    return experiment_page(
        made,
        rows,
        {title_of([pair for pair in group if pair not in alike]): of for group, of in groups},
        tables=own,
        notes=[*failures(made, rows), *made.notes],
        options={
            name: _written(value) for name, value in made.parameters.items() if value is not None
        },
        command=parameters.report.command,
    )


def _written(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def groups_of(lines: Sequence[Line]) -> list[tuple[Group, list[Line]]]:
    """Returns what the lines of each group have in common, and the lines."""
    found = groupby(lines, key=lambda line: list(line.group.items())[:-1])
    return [(group, list(of)) for group, of in found]


def title_of(group: Group) -> str:
    """Says what a group has in common: names as they are, numbers with what they count."""
    return ", ".join(
        str(value) if isinstance(value, str) else f"{column} {value}" for column, value in group
    )


def summary_table(made: Experiment, lines: Sequence[Line]) -> FittingTable:
    """Makes a line for each of those that are compared."""
    failed = any(line.failed for line in lines)
    counted = any(line.share is not None for line in lines)
    share = [made.share.name] if made.share is not None and counted else []
    headings = ["mean", "95 % interval", "st. dev.", "median", *share, "wins", "ties", "count"]
    rows = []
    for line in lines:
        interval = [] if line.low is None or line.high is None else [line.low, line.high]
        rows.append(
            (
                str(line.group[made.by[-1]]),
                shown(line.mean),
                " to ".join(map(decimal, interval)) or MISSING,
                shown(line.deviation),
                shown(line.median),
                *(MISSING if line.share is None else percent(line.share) for _ in share),
                *(whole(count) for count in (line.wins, line.ties, line.count)),
                *([whole(line.failed)] if failed else []),
            )
        )
    with_failed = ["failed"] if failed else []
    return table_of([made.by[-1], *headings, *with_failed], rows, kept=["mean", *with_failed])


def own_table(table: ExperimentTable) -> FittingTable:
    """Returns a preset's table as it is printed."""
    return table_of(table.header, [[shown(value) for value in line] for line in table.lines])


def shown(value: str | float | None) -> str:
    """Returns a cell with few digits."""
    return cell(value, decimal)


def failures(made: Experiment, rows: Sequence[Row]) -> list[str]:
    """Says how many values are missing, and why the first one could not."""
    failed = [row for row in rows if row[made.value] is None]
    if not failed:
        return []
    first = next((row for row in failed if row.get("problem")), None)
    why = "" if first is None else f", such as: {reason(first)}"
    return [f"{len(failed):,} values are missing{why}"]


def reason(row: Row) -> str:
    """Returns why a row has no value, and the remedy in the words of `shapleyprio experiment`."""
    remedy = row.get("remedy")
    error = ReplayError(str(row["problem"]), None if remedy is None else Remedy(str(remedy)))
    return error.worded(remedies_of("experiment"))
