"""Several trials beside each other, from what each has written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
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
    def taken_from(cls, name: str, told: Mapping[str, Any]) -> Self:
        """Takes it out of a trial's JSON."""
        return cls(
            name=name,
            jobs=sum(one["jobs"] for one in told["organizations"]),
            simulated={one["policy"]: one["unfairness"] for one in told["policies"]},
            arms={one["arm"]: one["unfairness"] for one in told["arms"]},
            models={one["arm"]: one["model"]["unfairness"] for one in told["arms"]},
            mean_lag=max(one["submission_lag"]["mean"] for one in told["arms"]),
        )


def mean_of(compared: Sequence[Compared]) -> Compared:
    """The means, over those trials that ran an arm or simulated a policy."""

    def means(columns: Sequence[Mapping[str, float]]) -> dict[str, float]:
        names = dict.fromkeys(name for column in columns for name in column)
        return {name: fmean(column[name] for column in columns if name in column) for name in names}

    return Compared(
        name="mean",
        jobs=round(fmean(one.jobs for one in compared)),
        simulated=means([one.simulated for one in compared]),
        arms=means([one.arms for one in compared]),
        models=means([one.models for one in compared]),
        mean_lag=fmean(one.mean_lag for one in compared),
    )
