"""What `shapleyprio trial` does: simulate, run the arms, show and write what came out."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from shapleyprio.cli.common import print_json
from shapleyprio.cli.progress import progress_bars
from shapleyprio.cli.replaying import (
    LEGEND,
    announce,
    organizations_table,
    plain_table,
    short,
)
from shapleyprio.cli.trial import Request
from shapleyprio.cli.workload_reading import complain, workload_for
from shapleyprio.cli.workloads import STDOUT
from shapleyprio.replay.log import Log
from shapleyprio.replay.results import Result, whole_file
from shapleyprio.replay.workload import Workload
from shapleyprio.service.accounting import AccountingError
from shapleyprio.testbed.errors import SlurmUnavailableHere
from shapleyprio.testbed.packages import ensure_installed
from shapleyprio.trial.arms import ARMS, USUAL_ARMS
from shapleyprio.trial.errors import TrialError
from shapleyprio.trial.plan import single_processor_jobs
from shapleyprio.trial.report import ArmResult, arm_result, report_as_json, simulated
from shapleyprio.trial.running import Conditions, Stage
from shapleyprio.trial.side_by_side import Watch, run_arms

LINE_EVERY_SECONDS = 60
"""Where standard error is no terminal."""


def trial(request: Request) -> None:
    """Does what was asked for.

    Raises:
        TrialError: an arm could not be run.
        AccountingError: they were, but records are missing or not as they must be.
    """
    with progress_bars() as bar:
        log, whole = workload_for(request.workload, bar)
    complain(log)
    workload, seed = single_processor_jobs(whole), request.workload.seed
    policies = simulated(workload, seed=seed, cores=len(os.sched_getaffinity(0)))
    conditions = Conditions(
        workload=workload, speed=request.speed, poll_seconds=request.poll_interval
    )
    arms = [ARMS[name] for name in request.arms or USUAL_ARMS]
    install()
    with state_directory(request.keep) as directory, watching(conditions) as watch:
        traces = run_arms(
            arms, conditions, directory=directory, at_once=request.side_by_side, watch=watch
        )
    results = [arm_result(workload, trace, policies[0], seed=seed) for trace in traces]
    tell(request, log, conditions, policies, results)
    if faults := [fault for result in results for fault in result.faults()]:
        raise AccountingError("\n".join(faults))


def install() -> None:
    """Makes sure that there is a Slurm to boot.

    Raises:
        TrialError: there cannot be one here.
    """
    try:
        ensure_installed(lambda line: click.echo(f"shapleyprio: {line}", err=True))
    except SlurmUnavailableHere as reason:
        raise TrialError(str(reason)) from reason


@contextmanager
def state_directory(wanted: Path | None) -> Iterator[Path]:
    """The directory of the whole state: the wanted one, which stays, or one that does not."""
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
        yield wanted.resolve()
        return
    # a short path, for it holds UNIX sockets
    with tempfile.TemporaryDirectory(prefix="shapleyprio-", ignore_cleanup_errors=True) as made:
        yield Path(made).resolve()


@contextmanager
def watching(conditions: Conditions) -> Iterator[Watch]:
    """Shows on standard error how far the arms are: bars on a terminal, else a line a minute."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(conditions)
        return
    columns = (TextColumn("{task.description:24}"), BarColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, TaskID] = {}

        def watch(stages: Sequence[Stage]) -> None:
            for stage in stages:
                if stage.arm not in tasks:
                    total = conditions.workload.window.length
                    tasks[stage.arm] = progress.add_task(stage.arm, total=total, told="")
                told = told_of(stage, conditions)
                progress.update(tasks[stage.arm], completed=stage.second, told=told)

        yield watch


def _lines(conditions: Conditions) -> Callable[[Sequence[Stage]], None]:
    last = time.monotonic()

    def watch(stages: Sequence[Stage]) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY_SECONDS:
            last = time.monotonic()
            for stage in stages:
                told = told_of(stage, conditions)
                click.echo(f"shapleyprio: {stage.arm}: {told}", err=True)

    return watch


def told_of(stage: Stage, conditions: Conditions) -> str:
    """How far an arm is, in words."""
    if stage.doing != "running":
        return stage.doing
    jobs, length = len(conditions.workload.job), conditions.workload.window.length
    left = (length - stage.second) // conditions.speed
    return f"{stage.submitted:,} of {jobs:,} jobs, {left // 60}:{left % 60:02} left"


def tell(
    request: Request,
    log: Log,
    conditions: Conditions,
    policies: Sequence[Result],
    arms: Sequence[ArmResult],
) -> None:
    """Writes what is to be written, and shows the rest."""
    if request.json_file is not None:
        told = report_as_json(log, policies, arms, conditions, with_jobs=request.jobs)
        told["seed"] = request.workload.seed
        if request.json_file == STDOUT:
            print_json(told)
            return
        with whole_file(request.json_file) as file:
            json.dump(told, file, indent=2, ensure_ascii=False)
            file.write("\n")
    render(Console(highlight=False), log, conditions, policies, arms)


def render(
    console: Console,
    log: Log,
    conditions: Conditions,
    policies: Sequence[Result],
    arms: Sequence[ArmResult],
) -> None:
    """Prints the tables."""
    workload = conditions.workload
    drifts = organizations_table(workload, [*policies, *(arm.result for arm in arms)])
    tables = [arms_table(workload, policies, arms), drifts]
    jobs = "jobs of one processor (wide ones became several)"
    announce(console, log, workload, tables, jobs=jobs)
    version = arms[0].trace.slurm_version
    minutes = max(arm.trace.real_seconds for arm in arms) / 60
    console.print(
        f"{version}, {conditions.speed} times as fast, {minutes:.1f} real minutes an arm",
        markup=False,
        soft_wrap=True,
    )
    for table in tables:
        console.print()
        console.print(table)
    console.print()
    console.print(LEGEND, style="dim", soft_wrap=True)


def arms_table(workload: Workload, policies: Sequence[Result], arms: Sequence[ArmResult]) -> Table:
    """A line for each arm, and for each simulated policy."""
    table = plain_table("arm")
    headings = ("Δψ/p_tot", "mean wait", "95 % wait", "utilization", "started", "missing")
    for heading in (*headings, "mean lag", "95 % lag"):
        table.add_column(heading, justify="right", no_wrap=True)
    length = workload.window.length
    for result in policies:
        started = int((result.schedule.start < length) @ result.schedule.copies)
        table.add_row(f"{result.schedule.policy} (simulated)", *_cells(result), f"{started:,}")
    for arm in arms:
        table.add_row(
            arm.trace.arm.name,
            *_cells(arm.result),
            f"{len(arm.outcome.schedule.job):,}",
            f"{arm.outcome.missing:,}",
            f"{short(arm.mean_lag)} s",
            f"{arm.lag_95th_percentile:,} s",
        )
    return table


def _cells(result: Result) -> tuple[str, ...]:
    measures = result.measures
    assert result.unfairness is not None, "ref is always simulated"
    return (
        f"{short(result.unfairness)} s",
        f"{short(measures.mean_wait)} s",
        f"{measures.wait_95th_percentile:,} s",
        f"{float(measures.utilization):.1%}",
    )
