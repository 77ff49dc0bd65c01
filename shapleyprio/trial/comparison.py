"""Several trials beside each other, from what each has written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTrial:
    """What is compared of one trial; unfairness is Δψ/p_tot in seconds.

    Attributes:
        name: of the trial.
        jobs: how many were submitted.
        simulated: policy -> its unfairness.
        arms: arm -> its unfairness, for the jobs as it got them.
        models: arm -> the unfairness of its policy, simulated for the same jobs.
        mean_lag: seconds from release to submission, of the arm with the longest ones.
    """

    name: str
    jobs: int
    simulated: Mapping[str, float]
    arms: Mapping[str, float]
    models: Mapping[str, float]
    mean_lag: float

    @classmethod
    def from_json(cls, name: str, report: Mapping[str, Any]) -> Self:
        """Reads it from a trial's JSON."""
        return cls(
            name=name,
            jobs=sum(row["jobs"] for row in report["organizations"]),
            simulated={row["policy"]: row["unfairness"] for row in report["policies"]},
            arms={arm["arm"]: arm["unfairness"] for arm in report["arms"]},
            models={arm["arm"]: arm["model"]["unfairness"] for arm in report["arms"]},
            mean_lag=max(arm["submission_lag"]["mean"] for arm in report["arms"]),
        )


def mean_of(compared: Sequence[ComparedTrial]) -> ComparedTrial:
    """Returns the means, over those trials that ran an arm or simulated a policy."""

    def means(columns: Sequence[Mapping[str, float]]) -> dict[str, float]:
        names = dict.fromkeys(name for column in columns for name in column)
        return {name: fmean(column[name] for column in columns if name in column) for name in names}

    return ComparedTrial(
        name="mean",
        jobs=round(fmean(trial.jobs for trial in compared)),
        simulated=means([trial.simulated for trial in compared]),
        arms=means([trial.arms for trial in compared]),
        models=means([trial.models for trial in compared]),
        mean_lag=fmean(trial.mean_lag for trial in compared),
    )
