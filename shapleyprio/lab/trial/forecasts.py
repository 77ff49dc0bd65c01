"""When jobs would start as the daemon and Slurm said at the same moments, and when they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.store import ForecastRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidStart:
    """What was said of a pending job's start; seconds since the epoch.

    Attributes:
        forecast: the daemon's.
        by_slurm: what `squeue --start` said just after it; None where it said nothing.
    """

    forecast: ForecastRow
    by_slurm: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartErrors:
    """What forecasts of jobs that started in the window were worth.

    Attributes:
        forecasts: how many there were, one for each job and moment.
        coverage: share of the intervals in which the jobs started; 0 without any.
        compared: how many of them `squeue --start` answered, too.
        error: median of the absolute errors of these forecasts' medians, in seconds; None without
            any.
        slurm_error: that of Slurm's answers.
    """

    forecasts: int
    coverage: float
    compared: int
    error: float | None
    slurm_error: float | None

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "forecasts": self.forecasts,
            "coverage": self.coverage,
            "compared": self.compared,
            "error_seconds": self.error,
            "squeue_error_seconds": self.slurm_error,
        }


def starts_by_slurm(cluster: PrivateSlurm) -> dict[int, int]:
    """Returns when Slurm expects pending jobs to start: job or array -> second."""
    command = ("squeue", "--start", "--noheader", "--states=PENDING", "--format=%F %S")
    lines = cluster.run("env", "SLURM_TIME_FORMAT=%s", *command).split("\n")
    words = (line.split() for line in lines)
    return {int(one[0]): int(one[1]) for one in words if len(one) == 2 and one[1].isdecimal()}


def errors_of(said: Sequence[SaidStart], starts: Mapping[int, int]) -> StartErrors:
    """Judges what was said.

    Args:
        said: of jobs.
        starts: job -> second at which it started.
    """
    known = [(one, starts[one.forecast.job_id]) for one in said if one.forecast.job_id in starts]
    covered = sum(one.forecast.early <= start <= one.forecast.late for one, start in known)
    both = [(one.forecast.median, one.by_slurm, start) for one, start in known if one.by_slurm]
    return StartErrors(
        forecasts=len(known),
        coverage=covered / len(known) if known else 0.0,
        compared=len(both),
        error=float(median(abs(ours - start) for ours, _, start in both)) if both else None,
        slurm_error=float(median(abs(slurms - start) for _, slurms, start in both))
        if both
        else None,
    )
