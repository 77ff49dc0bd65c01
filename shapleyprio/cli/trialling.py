"""What `shapleyprio trial` does: simulate, run the arms, show and write what came out."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
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
from shapleyprio.cli.trial_progress import watching
from shapleyprio.cli.workload_reading import complain, workload_for
from shapleyprio.cli.workloads import STDOUT, make_directory
from shapleyprio.replay.log import Log
from shapleyprio.replay.results import Result, whole_file
from shapleyprio.replay.workload import Workload
from shapleyprio.service.accounting import AccountingError
from shapleyprio.testbed.errors import SlurmUnavailableHere
from shapleyprio.testbed.packages import ensure_installed
from shapleyprio.trial.arms import ARMS, USUAL_ARMS
from shapleyprio.trial.errors import TrialError
from shapleyprio.trial.plan import as_slurm_runs_it
from shapleyprio.trial.report import ArmResult, arm_result, report_as_json, simulated
from shapleyprio.trial.running import Conditions, Stage, Trace
from shapleyprio.trial.side_by_side import Run, run_side_by_side
from shapleyprio.trial.steering import Pace

AS_SIMULATED = (
    "what the arm's policy makes of the same jobs in a simulation, released when Slurm got them, "
    "as long as they ran, and on the nodes that Slurm chose where these are free"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A trial whose jobs are read and whose policies are simulated.

    Attributes:
        request: what was asked for.
        log: that the jobs are from.
        conditions: what the arms have in common.
        policies: simulated, Ref first.
        runs: the arms, in the order asked for.
    """

    request: Request
    log: Log
    conditions: Conditions
    policies: Sequence[Result]
    runs: Sequence[Run]

    def results(self, traces: Sequence[Trace]) -> list[ArmResult]:
        """What the arms were worth."""
        workload, seed = self.conditions.workload, self.request.workload.seed
        return [arm_result(workload, trace, seed=seed, cores=cores_here()) for trace in traces]


def trial(request: Request) -> None:
    """Does what was asked for.

    Raises:
        TrialError: an arm could not be run.
        AccountingError: they were, but records are missing or not as they must be.
    """
    prepared = prepare(request)
    install()
    traces: dict[str, Trace] = {}
    with state_directory(request.keep) as directory, watching() as watch:
        run_side_by_side(
            prepared.runs,
            directory=directory,
            at_once=request.side_by_side,
            watch=watch,
            finished=lambda run, trace: traces.update({run.name: trace}),
        )
    results = prepared.results([traces[run.name] for run in prepared.runs])
    tell(prepared, results)
    refuse_faults(results)


def prepare(request: Request, *, directory: str = "") -> Prepared:
    """Reads the jobs and simulates the policies.

    Args:
        request: what was asked for.
        directory: that the arms' directories are to be in.

    Raises:
        ReplayError, ConfigError: there is no such workload.
    """
    with progress_bars() as bar:
        log, whole = workload_for(request.workload, bar)
    complain(log)
    workload, seed = as_slurm_runs_it(whole), request.workload.seed
    conditions = Conditions(
        workload=workload,
        speed=request.speed,
        pace=Pace(request.poll_interval, request.new_jobs_interval),
    )
    return Prepared(
        request=request,
        log=log,
        conditions=conditions,
        policies=simulated(workload, seed=seed, cores=cores_here()),
        runs=[
            Run(
                name=f"{directory}{name}",
                arm=ARMS[name],
                conditions=conditions,
                stage=Stage(name),
            )
            for name in request.arms or USUAL_ARMS
        ],
    )


def cores_here() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def refuse_faults(results: Sequence[ArmResult]) -> None:
    """Raises AccountingError if there is something that makes numbers doubtful."""
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
        make_directory("--keep", wanted)
        yield wanted.resolve()
        return
    # a short path, for it holds UNIX sockets
    with tempfile.TemporaryDirectory(prefix="shapleyprio-", ignore_cleanup_errors=True) as made:
        yield Path(made).resolve()


def tell(prepared: Prepared, arms: Sequence[ArmResult]) -> None:
    """Writes what is to be written, and shows the rest."""
    request = prepared.request
    if request.json_file is not None:
        told = told_of(prepared, arms)
        if request.json_file == STDOUT:
            print_json(told)
            return
        write_json(request.json_file, told)
    render(Console(highlight=False), prepared, arms)


def told_of(prepared: Prepared, arms: Sequence[ArmResult]) -> dict[str, Any]:
    """A trial's results as values that JSON knows."""
    request = prepared.request
    told = report_as_json(
        prepared.log, prepared.policies, arms, prepared.conditions, with_jobs=request.jobs
    )
    return {**told, "seed": request.workload.seed}


def write_json(path: Path, told: Mapping[str, Any]) -> None:
    """Writes a whole file, or none."""
    with whole_file(path) as file:
        json.dump(told, file, indent=2, ensure_ascii=False)
        file.write("\n")


def render(console: Console, prepared: Prepared, arms: Sequence[ArmResult]) -> None:
    """Prints the tables."""
    policies, conditions = prepared.policies, prepared.conditions
    workload = conditions.workload
    drifts = organizations_table(workload, [*policies, *(arm.result for arm in arms)])
    tables = [arms_table(workload, policies, arms), drifts]
    jobs = "jobs of one processor (wide ones became several)"
    announce(console, prepared.log, workload, tables, jobs=jobs)
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
    console.print(f"{LEGEND}; as simulated: {AS_SIMULATED}", style="dim", soft_wrap=True)


def arms_table(workload: Workload, policies: Sequence[Result], arms: Sequence[ArmResult]) -> Table:
    """A line for each arm, and for each simulated policy."""
    table = plain_table("arm")
    headings = (
        "Δψ/p_tot",
        "as simulated",
        "mean wait",
        "95 % wait",
        "utilization",
        "started",
        "missing",
    )
    for heading in (*headings, "mean lag", "95 % lag"):
        table.add_column(heading, justify="right", no_wrap=True)
    length = workload.window.length
    for result in policies:
        started = int((result.schedule.start < length) @ result.schedule.copies)
        table.add_row(f"{result.schedule.policy} (simulated)", *_cells(result, ""), f"{started:,}")
    for arm in arms:
        table.add_row(
            arm.trace.arm.name,
            *_cells(arm.result, f"{short(arm.model.unfairness or 0)} s"),
            f"{len(arm.outcome.schedule.job):,}",
            f"{arm.outcome.missing:,}",
            f"{short(arm.mean_lag)} s",
            f"{arm.lag_95th_percentile:,} s",
        )
    return table


def _cells(result: Result, model: str) -> tuple[str, ...]:
    measures = result.measures
    assert result.unfairness is not None, "ref is always simulated"
    return (
        f"{short(result.unfairness)} s",
        model,
        f"{short(measures.mean_wait)} s",
        f"{measures.wait_95th_percentile:,} s",
        f"{float(measures.utilization):.1%}",
    )
