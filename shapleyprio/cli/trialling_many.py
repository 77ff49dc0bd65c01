"""The work of `shapleyprio trials`: run what has no results yet, show all that have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from shapleyprio.cli.json_output import write_json
from shapleyprio.cli.parameters import ListedTrial, TrialsParameters
from shapleyprio.cli.tables import FittingTable, standard_output, table_of
from shapleyprio.cli.trial_progress import watching
from shapleyprio.cli.trialling import (
    AS_SIMULATED,
    install,
    prepared_trial,
    refuse_faults,
)
from shapleyprio.output import KeptResults
from shapleyprio.testbed.directories import state_directory
from shapleyprio.trial.arms import ARMS
from shapleyprio.trial.comparison import ComparedTrial, mean_of
from shapleyprio.trial.preparing import PreparedTrial, run_trials
from shapleyprio.trial.report import ArmResult
from shapleyprio.wording import decimal, whole

LEGEND = (
    "Δψ/p_tot, by how many seconds a part of work came too early or too late, on average, against "
    f"ref; in brackets: {AS_SIMULATED}"
)

SHOWN = ("fairshare", "directcontr")
"""Policies whose simulation with the jobs as they should be is shown."""


def trials(parameters: TrialsParameters) -> None:
    """Runs the trials that have no results yet, and shows all.

    Raises:
        TrialError: an arm could not be run; the results of trials that ended are kept.
        OutputError: results cannot be kept, or those of another trial are.
        AccountingError: records are missing or not as they must be.
    """
    results = KeptResults(parameters.keep, asked_as="trial")
    results.make()
    kept = {
        listed.name: report
        for listed in parameters.trials
        if (report := results.of(listed.name, dict(listed.keys))) is not None
    }
    waiting = [listed for listed in parameters.trials if listed.name not in kept]
    if kept and waiting:
        click.echo(f"shapleyprio: kept: {', '.join(kept)}", err=True)
    found: list[ArmResult] = []

    def finished(listed: ListedTrial, trial: PreparedTrial, arms: list[ArmResult]) -> None:
        found.extend(arms)
        report = trial.as_json(arms, with_jobs=listed.parameters.jobs)
        kept[listed.name] = results.keep(listed.name, dict(listed.keys), report)

    if waiting:
        _run(parameters, waiting, finished)
    _write_and_show(parameters, {listed.name: kept[listed.name] for listed in parameters.trials})
    refuse_faults(found)


def _run(
    parameters: TrialsParameters,
    waiting: Sequence[ListedTrial],
    finished: Callable[[ListedTrial, PreparedTrial, list[ArmResult]], None],
) -> None:
    """Runs trials, and hands each one over as soon as its last arm has ended."""
    install()
    # short names of directories, for UNIX sockets are below them
    prepared = [
        prepared_trial(listed.parameters, directory=f"{number}/")
        for number, listed in enumerate(waiting, start=1)
    ]
    with state_directory(parameters.directory) as directory, watching() as watch:
        run_trials(
            prepared,
            directory=directory,
            at_once=parameters.side_by_side,
            watch=watch,
            finished=lambda index, arms: finished(waiting[index], prepared[index], arms),
        )


def _write_and_show(parameters: TrialsParameters, kept: Mapping[str, dict[str, Any]]) -> None:
    compared = [ComparedTrial.from_json(name, report) for name, report in kept.items()]
    if write_json(parameters.json_file, dict(kept)):
        console = standard_output(highlight=False)
        console.print(trials_table([*compared, mean_of(compared)]))
        console.print()
        console.print(LEGEND, style="dim", soft_wrap=True)


def trials_table(compared: Sequence[ComparedTrial]) -> FittingTable:
    """Makes a line for each trial, the last one being their mean."""
    arms = [arm for arm in ARMS if any(arm in trial.arms for trial in compared)]
    simulated = (f"{name} (simulated)" for name in SHOWN)
    rows = [
        (
            trial.name,
            whole(trial.jobs),
            *(f"{decimal(trial.simulated[name])} s" for name in SHOWN),
            *(_arm_cell(trial, arm) for arm in arms),
            f"{decimal(trial.mean_lag)} s",
        )
        for trial in compared
    ]
    return table_of(("trial", "jobs", *simulated, *arms, "mean lag"), rows, kept=arms)


def _arm_cell(trial: ComparedTrial, arm: str) -> str:
    if arm not in trial.arms:
        return ""
    return f"{decimal(trial.arms[arm])} s ({decimal(trial.models[arm])} s)"
