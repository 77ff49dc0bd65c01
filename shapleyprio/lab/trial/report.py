"""The results of trials: arms beside simulated policies, and several trials beside each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from statistics import fmean
from typing import Any, Self, TypeVar

import numpy as np

from shapleyprio.lab.trial.executed import ExecutedWorkload, executed_workload
from shapleyprio.lab.trial.plan import ClusterPlan
from shapleyprio.lab.trial.running import Conditions, Trace
from shapleyprio.replay.alone import finish_times
from shapleyprio.replay.measures.measures import drifts, measure, unfairness
from shapleyprio.replay.measures.turns import Turns, turns_of
from shapleyprio.replay.policies import REFERENCE, run_policy
from shapleyprio.replay.results import Result, as_json, results_of
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import Workload

SIMULATED = (REFERENCE, "directcontr", "fairshare", "fcfs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmResult:
    """An arm and what it is worth.

    Attributes:
        trace: what was seen.
        executed: what that means.
        result: held against Ref's schedule of the jobs as Slurm got them.
        model: what the policy that decides alike makes of these jobs when it is simulated.
    """

    trace: Trace
    executed: ExecutedWorkload
    result: Result
    model: Result

    @property
    def mean_lag(self) -> float:
        """Seconds from release to submission."""
        lags = self.executed.lags
        return float(lags.mean()) if len(lags) else 0.0

    @property
    def lag_95th_percentile(self) -> int:
        """Seconds from release to submission that 95 % of the jobs do not exceed."""
        lags = np.sort(self.executed.lags)
        return int(lags[-(-95 * len(lags) // 100) - 1]) if len(lags) else 0

    def faults(self) -> list[str]:
        """Returns what makes the numbers doubtful, in words."""
        return faults_of(self.trace, self.executed)


def faults_of(trace: Trace, executed: ExecutedWorkload, *, preempts: bool = False) -> list[str]:
    """Returns what makes the numbers of an arm doubtful, in words.

    Args:
        trace: what was seen.
        executed: what that means.
        preempts: whether jobs may be ended, and begin again, because of others.
    """
    cycles = trace.cycles.outcomes if trace.cycles is not None else {}
    failed = [f"{n} cycles are {o}" for o, n in cycles.items() if o != "ok"]
    if trace.cycles is not None and trace.cycles.fallen_back:
        failed.append(f"{trace.cycles.fallen_back} cycles ranked without an estimate")
    unreadable = trace.unreadable
    unread = [f"{unreadable} lines of sacct could not be read"] if unreadable else []
    refused = [f"Slurm refused {n} jobs: {reason}" for reason, n in trace.refused.items()]
    name = trace.arm.name
    return [
        f"{name}: {fault}"
        for fault in [*executed.faults(preempts=preempts), *refused, *unread, *failed]
    ]


def simulated(
    workload: Workload, *, seed: int, cores: int, policies: Sequence[str] = SIMULATED
) -> tuple[Result, ...]:
    """Simulates Ref and some other policies on the workload, and returns Ref's result first.

    Raises:
        ReplayError: it cannot be simulated exactly.
    """
    return results_of(
        workload,
        [run_policy(workload, policy, seed=seed, cores=cores) for policy in policies],
    )


def arm_result(plan: ClusterPlan, trace: Trace, *, seed: int, cores: int = 1) -> ArmResult:
    """Measures an arm.

    On an accelerated clock jobs come and start some seconds late and last longer than they should,
    the more so in bursts. That is the trial's doing and not the policy's, so the fair schedule is
    that of the jobs as Slurm got them.

    Args:
        plan: how the jobs were put on the cluster.
        trace: what was seen of the arm.
        seed: of the workload.
        cores: that Ref may use.
    """
    executed = executed_by(plan, trace, seed=seed)
    policies = (REFERENCE, trace.arm.model)
    fair, model = simulated(executed.given, seed=seed, cores=cores, policies=policies)
    return ArmResult(
        trace=trace, executed=executed, result=held_against(fair, executed), model=model
    )


def executed_by(plan: ClusterPlan, trace: Trace, *, seed: int) -> ExecutedWorkload:
    """Returns the workload as an arm's Slurm ran it."""
    return executed_workload(
        plan,
        trace.records,
        policy=trace.arm.name,
        submitted=trace.submitted,
        begin=trace.begin,
        held=trace.held,
        seed=seed,
    )


def held_against(fair: Result, executed: ExecutedWorkload) -> Result:
    """Measures an arm's schedule.

    Args:
        fair: Ref's result for the jobs as Slurm got them.
        executed: what the arm made of them.
    """
    measures = measure(executed.workload, executed.schedule)
    turns = turns_of(executed.given, [executed.schedule])
    return Result(
        schedule=executed.schedule,
        measures=measures,
        unfairness=unfairness(measures, fair.measures),
        drifts=drifts(measures, fair.measures),
        turns=None if turns is None else turns[0],
        finish_times=finish_times(executed.workload, [executed.schedule])[0],
    )


def report_as_json(
    log: Log,
    policies: Sequence[Result],
    arms: Sequence[ArmResult],
    conditions: Conditions,
    *,
    with_jobs: bool,
) -> dict[str, Any]:
    """Returns everything as values that JSON knows; policies as `shapleyprio replay` writes them.

    Args:
        log: that the workload was taken from.
        policies: simulated.
        arms: on the real Slurm.
        conditions: what the arms had in common.
        with_jobs: a row for each job of each arm as well.
    """
    workload = conditions.workload
    names = workload.organizations
    report = as_json(log, workload, policies)
    for policy, result in zip(report["policies"], policies, strict=True):
        policy["drifts"] = _drifts(names, result)
    return {
        **report,
        "versions": {
            "shapleyprio": version("shapleyprio"),
            "slurm": arms[0].trace.slurm_version if arms else None,
        },
        "wide": workload.wide,
        "speed": conditions.speed,
        "poll_interval": conditions.pace.poll_seconds,
        "new_jobs_interval": conditions.pace.new_jobs_seconds,
        "arms": [_arm_as_json(log, arm, names, with_jobs=with_jobs) for arm in arms],
    }


def _arm_as_json(
    log: Log, arm: ArmResult, names: Sequence[str], *, with_jobs: bool
) -> dict[str, Any]:
    trace, executed = arm.trace, arm.executed
    (row,) = as_json(log, executed.workload, [arm.result])["policies"]
    row["arm"] = row.pop("policy")
    del row["seconds"]  # how long Slurm's decisions take is not measured
    cycles = trace.cycles
    return {
        **row,
        "drifts": _drifts(names, arm.result),
        "model": {"policy": trace.arm.model, "unfairness": float(arm.model.unfairness or 0)},
        "mean_wait": float(arm.result.measures.mean_wait),
        "wait_95th_percentile": arm.result.measures.wait_95th_percentile,
        "settings": dict(trace.arm.settings),
        "started": executed.count_started,
        "missing": executed.missing,
        "requeued": executed.requeued,
        "states": dict(executed.states),
        "submission_lag": {"mean": arm.mean_lag, "95th_percentile": arm.lag_95th_percentile},
        "cycles": None if cycles is None else dict(cycles.outcomes),
        "fallen_back": None if cycles is None else cycles.fallen_back,
        "written": None if cycles is None else cycles.written,
        "starts": None if trace.start_errors is None else asdict(trace.start_errors),
        "real_seconds": round(trace.real_seconds, 1),
        **({"jobs": _jobs(executed)} if with_jobs else {}),
    }


def _drifts(names: Sequence[str], result: Result) -> Mapping[str, float]:
    drifts = result.drifts or ()
    return {name: float(drift) for name, drift in zip(names, drifts, strict=True)}


def _jobs(executed: ExecutedWorkload) -> list[dict[str, Any]]:
    """Returns a row for each job; seconds count from the window's begin, null is not known."""
    workload = executed.workload
    names = dict(enumerate(workload.organizations))
    owners: list[dict[str | None, int]] = [{} for _ in workload.job]
    schedule = executed.schedule
    parts = zip(*(c.tolist() for c in (schedule.job, schedule.owner, schedule.copies)), strict=True)
    for job, owner, copies in parts:
        owners[job][names.get(owner)] = copies
    columns = zip(
        *(workload.job.tolist(), workload.organization.tolist(), workload.processors.tolist()),
        *(owners, workload.release.tolist()),
        *(executed.submitted.tolist(), executed.started.tolist()),
        workload.processing_time.tolist(),
        strict=True,
    )
    return [
        {
            "job": job,
            "organization": names[u],
            "processors": processors,
            "owners": held,
            "release": release,
            "submitted": None if submitted == UNKNOWN else submitted,
            "start": None if start == UNKNOWN else start,
            "processing_time": seconds,
        }
        for job, u, processors, held, release, submitted, start, seconds in columns
    ]


Value = TypeVar("Value")
Average = Callable[[Sequence[float]], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTrial:
    """What is compared of a trial; unfairness is Δψ/p_tot in seconds.

    Attributes:
        name: of the trial.
        jobs: how many were submitted.
        simulated: policy -> its unfairness.
        arms: arm -> its unfairness in each run, for the jobs as it got them.
        models: arm -> the unfairness of its policy, simulated for the same jobs; the mean of the
            runs.
        turns: policy, or arm, -> its turns in all runs together; missing where nothing was judged.
        mean_lag: seconds from release to submission, of the arm and run with the longest ones.
    """

    name: str
    jobs: int
    simulated: Mapping[str, float]
    arms: Mapping[str, Sequence[float]]
    models: Mapping[str, float]
    turns: Mapping[str, Turns]
    mean_lag: float

    @classmethod
    def from_json(cls, name: str, runs: Sequence[Mapping[str, Any]]) -> Self:
        """Reads it from the JSON of its runs, of which there is at least one."""
        rows = [row for run in runs for row in run["arms"]]
        of_arm = {row["arm"]: [r for r in rows if r["arm"] == row["arm"]] for row in rows}
        of_policy = {row["policy"]: [row] for row in runs[0]["policies"]}
        return cls(
            name=name,
            jobs=sum(row["jobs"] for row in runs[0]["organizations"]),
            simulated={policy: row["unfairness"] for policy, (row,) in of_policy.items()},
            arms={arm: [row["unfairness"] for row in own] for arm, own in of_arm.items()},
            models={
                arm: fmean(row["model"]["unfairness"] for row in own) for arm, own in of_arm.items()
            },
            turns={
                what: _pooled(Turns(row["contested"], row["out_of_turn"]) for row in own)
                for what, own in (of_policy | of_arm).items()
                if all(row["contested"] is not None for row in own)
            },
            mean_lag=max(row["submission_lag"]["mean"] for row in rows),
        )


def average_of(name: str, average: Average, compared: Sequence[ComparedTrial]) -> ComparedTrial:
    """Averages over those trials that ran an arm or simulated a policy, run by run.

    Args:
        name: of the average.
        average: `fmean`, for instance.
        compared: the trials, at least one; runs that not all of them have are left out.
    """

    def over_trials(columns: Sequence[Mapping[str, float]]) -> dict[str, float]:
        return {what: average(values) for what, values in _columns(columns).items()}

    return ComparedTrial(
        name=name,
        jobs=round(average([trial.jobs for trial in compared])),
        simulated=over_trials([trial.simulated for trial in compared]),
        arms={
            arm: [average(values) for values in zip(*runs, strict=False)]
            for arm, runs in _columns([trial.arms for trial in compared]).items()
        },
        models=over_trials([trial.models for trial in compared]),
        turns={
            what: _pooled(turns)
            for what, turns in _columns([trial.turns for trial in compared]).items()
        },
        mean_lag=average([trial.mean_lag for trial in compared]),
    )


def _columns(rows: Sequence[Mapping[str, Value]]) -> dict[str, list[Value]]:
    """Returns name -> the values of those rows that have one."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row[name] for row in rows if name in row] for name in names}


def _pooled(turns: Iterable[Turns]) -> Turns:
    return sum(turns, Turns(0, 0))
