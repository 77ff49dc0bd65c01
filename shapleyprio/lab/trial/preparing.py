"""Trials from their jobs to their results: prepared, run arm beside arm, measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapleyprio.lab.trial.arms import ARMS
from shapleyprio.lab.trial.plan import OwnNodes, as_slurm_runs_it
from shapleyprio.lab.trial.report import ArmResult, arm_result, report_as_json, simulated
from shapleyprio.lab.trial.running import ArmRun, ArmsWatch, Conditions, Trace, run_side_by_side
from shapleyprio.lab.trial.steering import Pace
from shapleyprio.replay.policies import policy_named
from shapleyprio.replay.results import Result
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Workload, with_history


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTrial:
    """A trial whose jobs are read and whose policies are simulated.

    Attributes:
        log: that the jobs are from.
        conditions: what the arms have in common.
        policies: simulated, Ref first.
        runs: the arms, in the order in which they begin.
        seed: of all random draws.
    """

    log: Log
    conditions: Conditions
    policies: Sequence[Result]
    runs: Sequence[ArmRun]
    seed: int

    def results(self, traces: Mapping[str, Trace]) -> list[ArmResult]:
        """Measures the arms.

        Args:
            traces: name of a run -> what was seen of it; all runs of this trial are there.
        """
        return [
            arm_result(self.conditions.plan, traces[run.name], seed=self.seed, cores=_cores_here())
            for run in self.runs
        ]

    def as_json(self, arms: Sequence[ArmResult], *, with_jobs: bool) -> dict[str, Any]:
        """Returns the trial's results as values that JSON knows.

        Args:
            arms: as `results` returns them.
            with_jobs: whether there is a row for each job of each arm.
        """
        report = report_as_json(self.log, self.policies, arms, self.conditions, with_jobs=with_jobs)
        return {**report, "seed": self.seed}


TrialFinished = Callable[[int, list[ArmResult]], None]
"""Called with a trial's index when its last arm has ended."""


def prepare(
    log: Log,
    workload: Workload,
    *,
    arms: Sequence[str],
    speed: int,
    pace: Pace,
    seed: int,
    directory: str = "",
) -> PreparedTrial:
    """Splits jobs as Slurm runs them, and simulates the policies.

    Args:
        log: that the workload was taken from.
        workload: jobs of any width.
        arms: names of `ARMS`, in the order in which they begin.
        speed: cluster seconds per real second.
        pace: of the daemon.
        seed: of all random draws.
        directory: that the arms' directories are to be in.

    Raises:
        ReplayError: there are too many jobs, or they cannot be simulated exactly.
    """
    if any(policy_named(ARMS[name].model).uses_history for name in arms):
        workload = with_history(workload, log)
    conditions = Conditions(plan=OwnNodes(as_slurm_runs_it(workload)), speed=speed, pace=pace)
    return PreparedTrial(
        log=log,
        conditions=conditions,
        policies=simulated(conditions.workload, seed=seed, cores=_cores_here()),
        runs=[
            ArmRun(name=f"{directory}{name}", arm=ARMS[name], conditions=conditions)
            for name in arms
        ],
        seed=seed,
    )


def run_trials(
    trials: Sequence[PreparedTrial],
    *,
    directory: Path,
    at_once: int,
    watch: ArmsWatch,
    finished: TrialFinished,
) -> None:
    """Runs the arms of all trials, some beside each other.

    Args:
        trials: the names of their runs all differ.
        directory: for the state of all arms.
        at_once: how many arms run beside each other at most.
        watch: called now and then.
        finished: called when the last arm of a trial has ended.

    Raises:
        SlurmError: an arm could not be run.
    """
    traces: dict[str, Trace] = {}
    index_of = {run.name: index for index, trial in enumerate(trials) for run in trial.runs}

    def arm_finished(run: ArmRun, trace: Trace) -> None:
        traces[run.name] = trace
        index = index_of[run.name]
        if all(other.name in traces for other in trials[index].runs):
            finished(index, trials[index].results(traces))

    run_side_by_side(
        [run for trial in trials for run in trial.runs],
        directory=directory,
        at_once=at_once,
        watch=watch,
        finished=arm_finished,
    )


def _cores_here() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0))
