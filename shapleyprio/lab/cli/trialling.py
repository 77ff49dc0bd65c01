"""The work of `shapleyprio trial` and `trials`: run the arms, show and write what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import fmean, median
from typing import Any

import click
import numpy as np
from rich.console import Console

from shapleyprio.cli.offline.workloads import (
    OUT_OF_TURN,
    TURNS_LEGEND,
    announce,
    legend,
    organizations_table,
    out_of_turn,
    workload_for,
)
from shapleyprio.cli.options.json_output import write_json
from shapleyprio.cli.shown.progress import progress_bars
from shapleyprio.cli.shown.tables import FittingTable, standard_output, table_of
from shapleyprio.common.wording import decimal, duration, percent, whole
from shapleyprio.daemon.accounting.cluster_clock import AccountingError
from shapleyprio.lab.cli.parameters import TrialParameters, TrialRun, TrialsParameters
from shapleyprio.lab.cli.trial_progress import watching
from shapleyprio.lab.experiment.keeping import KeptResults
from shapleyprio.lab.testbed.machine import ensure_installed, state_directory
from shapleyprio.lab.trial.arms import ARMS, USUAL_ARMS
from shapleyprio.lab.trial.preparing import PreparedTrial, prepare, run_trials
from shapleyprio.lab.trial.report import ArmResult, ComparedTrial, average_of
from shapleyprio.lab.trial.steering import Pace
from shapleyprio.replay.results import Result
from shapleyprio.replay.workloads.workload import Workload

AS_SIMULATED = (
    "what the arm's policy makes of the same jobs in a simulation, released when Slurm got them, "
    "as long as they ran, and on the nodes that Slurm chose where these are free"
)


def trial(parameters: TrialParameters) -> None:
    """Runs a trial and shows its results.

    Raises:
        SlurmError: an arm could not be run.
        AccountingError: they were, but records are missing or not as they must be.
    """
    prepared = prepared_trial(parameters)
    install()
    found: list[ArmResult] = []
    with state_directory(parameters.directory) as directory, watching() as watch:
        run_trials(
            [prepared],
            directory=directory,
            at_once=parameters.side_by_side,
            watch=watch,
            finished=lambda _index, results: found.extend(results),
        )
    write_and_show(parameters, prepared, found)
    refuse_faults(found)


def prepared_trial(parameters: TrialParameters, *, directory: str = "") -> PreparedTrial:
    """Reads the jobs and simulates the policies.

    Args:
        parameters: of the command.
        directory: that the arms' directories are to be in.

    Raises:
        ReplayError, ConfigError: there is no such workload.
    """
    with progress_bars() as bar:
        log, workload = workload_for(parameters.workload, bar, wide=parameters.wide)
    return prepare(
        log,
        workload,
        arms=parameters.arms or USUAL_ARMS,
        speed=parameters.speed,
        pace=Pace(parameters.poll_interval, parameters.new_jobs_interval),
        seed=parameters.workload.seed,
        directory=directory,
    )


def refuse_faults(results: Sequence[ArmResult]) -> None:
    """Raises AccountingError if there is something that makes numbers doubtful."""
    if faults := [fault for result in results for fault in result.faults()]:
        raise AccountingError("\n".join(faults))


def install() -> None:
    """Makes sure that there is a Slurm to boot.

    Raises:
        SlurmUnavailableHere: there cannot be one here.
    """
    ensure_installed(lambda line: click.echo(f"shapleyprio: {line}", err=True))


def write_and_show(
    parameters: TrialParameters, prepared: PreparedTrial, arms: Sequence[ArmResult]
) -> None:
    """Writes the file, and shows the tables."""
    if parameters.json_file is None or write_json(
        parameters.json_file, prepared.as_json(arms, with_jobs=parameters.jobs)
    ):
        render(standard_output(highlight=False), prepared, arms)


def render(console: Console, prepared: PreparedTrial, arms: Sequence[ArmResult]) -> None:
    """Prints the tables."""
    policies, conditions = prepared.policies, prepared.conditions
    workload = conditions.workload
    drifts = organizations_table(workload, [*policies, *(arm.result for arm in arms)])
    tables = [arms_table(workload, policies, arms), drifts]
    if starts := starts_table(arms):
        tables.append(starts)
    cut = "jobs of one processor (wide ones became several)"
    announce(
        console, prepared.log, workload, jobs="whole jobs" if workload.wide == "rigid" else cut
    )
    version = arms[0].trace.slurm_version
    minutes = max(arm.trace.real_seconds for arm in arms) / 60
    console.print(
        f"{version}, {conditions.speed} times as fast, {minutes:.1f} real minutes an arm",
        soft_wrap=True,
    )
    for table in tables:
        console.print()
        console.print(table)
    console.print()
    console.print(f"{legend(policies)}; as simulated: {AS_SIMULATED}", style="dim", soft_wrap=True)


def arms_table(
    workload: Workload, policies: Sequence[Result], arms: Sequence[ArmResult]
) -> FittingTable:
    """Makes a line for each arm, and for each simulated policy."""
    waits = ("mean wait", "95 % wait")
    counts = ("started", "missing", "mean lag", "95 % lag")
    length = workload.window.length
    rows = [
        (
            f"{result.schedule.policy} (simulated)",
            *_cells(result, ""),
            whole(len(np.unique(result.schedule.job[result.schedule.start < length]))),
            *("" for _ in counts[1:]),
        )
        for result in policies
    ]
    rows += [
        (
            arm.trace.arm.name,
            *_cells(arm.result, arm.model.gap),
            whole(arm.executed.count_started),
            whole(arm.executed.missing),
            duration(arm.mean_lag),
            duration(arm.lag_95th_percentile),
        )
        for arm in arms
    ]
    headings = ("arm", "Δψ/p_tot", "as simulated", OUT_OF_TURN, *waits, "utilization", *counts)
    return table_of(headings, rows, kept=("Δψ/p_tot",))


def starts_table(arms: Sequence[ArmResult]) -> FittingTable | None:
    """Makes a line for each arm whose daemon forecast starts, beside what Slurm said of them."""
    headings = ("arm", "forecasts", "in the interval", "Slurm also", "median error", "Slurm's")
    rows = [
        (
            arm.trace.arm.name,
            whole(errors.forecasts),
            percent(errors.coverage),
            whole(errors.compared),
            duration(errors.error_seconds or 0),
            duration(errors.squeue_error_seconds or 0),
        )
        for arm in arms
        if (errors := arm.trace.start_errors) is not None and errors.compared
    ]
    return table_of(headings, rows) if rows else None


def _cells(result: Result, model: str) -> tuple[str, ...]:
    measures = result.measures
    assert result.unfairness is not None, "ref is always simulated"
    return (
        duration(float(result.unfairness)),
        model,
        out_of_turn(result.turns),
        duration(float(measures.mean_wait)),
        duration(measures.wait_95th_percentile),
        percent(measures.utilization),
    )


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
    asked = {run.part: dict(run.trial.keys) for run in chain.from_iterable(rounds)}
    kept = results.finished(asked)
    waiting = [[run for run in runs if run.part not in kept] for runs in rounds]
    if kept and any(waiting):
        click.echo(f"shapleyprio: kept: {', '.join(kept)}", err=True)
    found: list[ArmResult] = []

    def finished(run: TrialRun, trial: PreparedTrial, arms: list[ArmResult]) -> None:
        found.extend(arms)
        report = trial.as_json(arms, with_jobs=run.trial.parameters.jobs)
        kept[run.part] = results.keep(run.part, asked[run.part], report)

    if any(waiting):
        install()
        with state_directory(parameters.directory) as directory:
            for runs in filter(None, waiting):
                _run_round(parameters, runs, directory, finished)
    _write_and_show_all(parameters, rounds, kept)
    refuse_faults(found)


def _run_round(
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


def _write_and_show_all(
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
