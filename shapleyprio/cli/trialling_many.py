"""What `shapleyprio trials` does: run what has no results yet, show all that have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from shapleyprio.cli.common import print_json
from shapleyprio.cli.replaying import plain_table, short
from shapleyprio.cli.trial_progress import watching
from shapleyprio.cli.trialling import (
    AS_SIMULATED,
    Prepared,
    install,
    prepare,
    refuse_faults,
    state_directory,
    told_of,
    write_json,
)
from shapleyprio.cli.trials import Listed, Request
from shapleyprio.cli.workloads import STDOUT, make_directory
from shapleyprio.trial.arms import ARMS
from shapleyprio.trial.comparison import Compared, mean_of
from shapleyprio.trial.report import ArmResult
from shapleyprio.trial.running import Trace
from shapleyprio.trial.side_by_side import Run, run_side_by_side

LEGEND = (
    "Δψ/p_tot, by how many seconds a part of work came too early or too late, on average, against "
    f"ref; in brackets: {AS_SIMULATED}"
)

SHOWN = ("fairshare", "directcontr")
"""Policies whose simulation with the jobs as they should be is shown."""


def trials(request: Request) -> None:
    """Does what was asked for.

    Raises:
        TrialError: an arm could not be run; the results of trials that ended are kept.
        AccountingError: records are missing or not as they must be.
    """
    make_directory("--results", request.results)
    kept = {one.name: told for one in request.trials if (told := _kept(request, one)) is not None}
    waiting = [one for one in request.trials if one.name not in kept]
    if kept and waiting:
        click.echo(f"shapleyprio: kept: {', '.join(kept)}", err=True)
    faulty = _run(request, waiting, kept) if waiting else []
    _tell(request, {one.name: kept[one.name] for one in request.trials})
    refuse_faults(faulty)


def _file(request: Request, trial: Listed) -> Path:
    return request.results / f"{trial.name}.json"


def _kept(request: Request, trial: Listed) -> dict[str, Any] | None:
    """A trial's results, if it has ended already.

    Raises:
        click.UsageError: they are another trial's.
    """
    file = _file(request, trial)
    if not file.exists():
        return None
    try:
        told: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        told = {}
    if told.get("trial") != dict(trial.asked):
        raise click.UsageError(
            f"{file}: these are not the results of what the list asks for now; remove the file, "
            "or name another directory with --results"
        )
    return told


def _run(
    request: Request, waiting: Sequence[Listed], kept: dict[str, dict[str, Any]]
) -> list[ArmResult]:
    """Runs trials; results go to `kept` and to files as soon as a trial's last arm has ended."""
    install()
    # short names of directories, for UNIX sockets are below them
    prepared = {
        number: prepare(one.request, directory=f"{number}/")
        for number, one in enumerate(waiting, start=1)
    }
    runs = {run.name: number for number, one in prepared.items() for run in one.runs}
    traces: dict[str, Trace] = {}
    found: list[ArmResult] = []

    def finished(run: Run, trace: Trace) -> None:
        traces[run.name] = trace
        number = runs[run.name]
        of_trial = prepared[number]
        if all(other.name in traces for other in of_trial.runs):
            trial = waiting[number - 1]
            results = of_trial.results([traces[other.name] for other in of_trial.runs])
            found.extend(results)
            kept[trial.name] = _keep(request, trial, of_trial, results)

    with state_directory(request.keep) as directory, watching() as watch:
        run_side_by_side(
            list(_scattered([one.runs for one in prepared.values()])),
            directory=directory,
            at_once=request.side_by_side,
            watch=watch,
            finished=finished,
        )
    return found


def _scattered(trials: Sequence[Sequence[Run]]) -> Iterator[Run]:
    """The first arms of all trials, then the second ones, and so on.

    Arms of one trial want the machine at the same moments.
    """
    for runs in zip_longest(*trials):
        yield from (run for run in runs if run is not None)


def _keep(
    request: Request, trial: Listed, prepared: Prepared, results: Sequence[ArmResult]
) -> dict[str, Any]:
    told = {"trial": dict(trial.asked), **told_of(prepared, results)}
    write_json(_file(request, trial), told)
    return told


def _tell(request: Request, kept: Mapping[str, dict[str, Any]]) -> None:
    compared = [Compared.taken_from(name, told) for name, told in kept.items()]
    if request.json_file == STDOUT:
        print_json(dict(kept))
        return
    if request.json_file is not None:
        write_json(request.json_file, dict(kept))
    console = Console(highlight=False)
    table = trials_table([*compared, mean_of(compared)])
    needed = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    console.width = max(console.width, needed)  # nothing is cut off; terminals wrap
    console.print(table)
    console.print()
    console.print(LEGEND, style="dim", soft_wrap=True)


def trials_table(compared: Sequence[Compared]) -> Table:
    """A line for each trial, the last one being their mean."""
    arms = [arm for arm in ARMS if any(arm in one.arms for one in compared)]
    table = plain_table("trial")
    for heading in ("jobs", *(f"{name} (simulated)" for name in SHOWN), *arms, "mean lag"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in compared:
        table.add_row(
            one.name,
            f"{one.jobs:,}",
            *(f"{short(one.simulated[name])} s" for name in SHOWN),
            *(_arm_cell(one, arm) for arm in arms),
            f"{short(one.mean_lag)} s",
        )
    return table


def _arm_cell(one: Compared, arm: str) -> str:
    if arm not in one.arms:
        return ""
    return f"{short(one.arms[arm])} s ({short(one.models[arm])} s)"
