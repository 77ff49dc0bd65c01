"""Several trials beside each other, from what each of their runs has written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self, TypeVar

from shapleyprio.replay.measures.turns.counting import Turns

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
