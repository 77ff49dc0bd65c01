"""The work of `shapleyprio trials`: run what has no results yet, show all that have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import fmean, median
from typing import Any

import click

from shapleyprio.cli.offline.workload_tables import OUT_OF_TURN, TURNS_LEGEND, out_of_turn
from shapleyprio.cli.options.json_output import write_json
from shapleyprio.cli.shown.tables import FittingTable, standard_output, table_of
from shapleyprio.common.wording import decimal, whole
from shapleyprio.lab.cli.parameters import TrialRun, TrialsParameters
from shapleyprio.lab.cli.trial_progress import watching
from shapleyprio.lab.cli.trialling import AS_SIMULATED, install, prepared_trial, refuse_faults
from shapleyprio.lab.experiment.keeping import KeptResults
from shapleyprio.lab.testbed.directories import state_directory
from shapleyprio.lab.trial.arms import ARMS
from shapleyprio.lab.trial.comparison import ComparedTrial, average_of
from shapleyprio.lab.trial.preparing import PreparedTrial, run_trials
from shapleyprio.lab.trial.report import ArmResult

LEGEND = (
    "Δψ/p_tot, by how many seconds a part of work came too early or too late, on average, against "
    "ref; of several runs the mean, and in square brackets the least and the most; in round "
    f"brackets: {AS_SIMULATED}"
)

SHOWN = ("fairshare", "directcontr")
"""Policies whose simulation with the jobs as they should be is shown."""

SIMULATED = tuple(f"{name} (simulated)" for name in SHOWN)


def trials(parameters: TrialsParameters) -> None:
    """Runs what has no results yet, and shows all.

    Raises:
        SlurmError: an arm could not be run; the results of trials that ended are kept.
        OutputError: results cannot be kept, or those of another trial are.
        AccountingError: records are missing or not as they must be.
    """
    results = KeptResults(parameters.keep, asked_as="trial")
    results.make()
    numbers = range(1, parameters.repeat + 1)
    rounds = [[TrialRun(listed, number) for listed in parameters.trials] for number in numbers]
    kept = {
        run.part: report
        for run in chain.from_iterable(rounds)
        if (report := results.of(run.part, dict(run.trial.keys))) is not None
    }
    waiting = [[run for run in runs if run.part not in kept] for runs in rounds]
    if kept and any(waiting):
        click.echo(f"shapleyprio: kept: {', '.join(kept)}", err=True)
    found: list[ArmResult] = []

    def finished(run: TrialRun, trial: PreparedTrial, arms: list[ArmResult]) -> None:
        found.extend(arms)
        report = trial.as_json(arms, with_jobs=run.trial.parameters.jobs)
        kept[run.part] = results.keep(run.part, dict(run.trial.keys), report)

    if any(waiting):
        install()
        with state_directory(parameters.directory) as directory:
            for runs in filter(None, waiting):
                _run(parameters, runs, directory, finished)
    _write_and_show(parameters, rounds, kept)
    refuse_faults(found)


def _run(
    parameters: TrialsParameters,
    waiting: Sequence[TrialRun],
    directory: Path,
    finished: Callable[[TrialRun, PreparedTrial, list[ArmResult]], None],
) -> None:
    """Runs trials, and hands each one over as soon as its last arm has ended."""
    # short names of directories, for UNIX sockets are below them
    prepared = [
        prepared_trial(run.trial.parameters, directory=f"{run.number}/{number}/")
        for number, run in enumerate(waiting, start=1)
    ]
    with watching() as watch:
        run_trials(
            prepared,
            directory=directory,
            at_once=parameters.side_by_side,
            watch=watch,
            finished=lambda index, arms: finished(waiting[index], prepared[index], arms),
        )


def _write_and_show(
    parameters: TrialsParameters,
    rounds: Sequence[Sequence[TrialRun]],
    kept: Mapping[str, dict[str, Any]],
) -> None:
    compared = [
        ComparedTrial.from_json(runs[0].trial.name, [kept[run.part] for run in runs])
        for runs in zip(*rounds, strict=True)
    ]
    in_order = {run.part: kept[run.part] for run in chain.from_iterable(rounds)}
    if write_json(parameters.json_file, in_order):
        mean = average_of("mean", fmean, compared)
        console = standard_output(highlight=False)
        console.print(trials_table([*compared, mean, average_of("median", median, compared)]))
        console.print()
        console.print(turns_table([*compared, replace(mean, name="all")]))
        console.print()
        console.print(f"{LEGEND}; {TURNS_LEGEND}", style="dim", soft_wrap=True)


def trials_table(compared: Sequence[ComparedTrial]) -> FittingTable:
    """Makes a line for each trial, the last ones being their averages."""
    arms = _arms_of(compared)
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
    return table_of(("trial", "jobs", *SIMULATED, *arms, "mean lag"), rows, kept=arms)


def turns_table(compared: Sequence[ComparedTrial]) -> FittingTable:
    """Makes a line for each trial, of all its runs together; the last one is of all trials."""
    arms = _arms_of(compared)
    rows = [
        (trial.name, *(out_of_turn(trial.turns.get(what)) for what in (*SHOWN, *arms)))
        for trial in compared
    ]
    return table_of((OUT_OF_TURN, *SIMULATED, *arms), rows, kept=arms)


def _arms_of(compared: Sequence[ComparedTrial]) -> list[str]:
    return [arm for arm in ARMS if any(arm in trial.arms for trial in compared)]


def _arm_cell(trial: ComparedTrial, arm: str) -> str:
    if arm not in trial.arms:
        return ""
    runs = trial.arms[arm]
    spread = f" [{decimal(min(runs))} to {decimal(max(runs))}]" if len(runs) > 1 else ""
    return f"{decimal(fmean(runs))} s{spread} ({decimal(trial.models[arm])} s)"
