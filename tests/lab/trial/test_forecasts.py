"""What the daemon and Slurm said of starts, held against the starts."""

from __future__ import annotations

from shapleyprio.lab.trial.steering import SaidStart, StartErrors, errors_of
from shapleyprio.store import ForecastRow


def said(job_id: int, median: int, by_slurm: int | None) -> SaidStart:
    """An interval of ten seconds to each side."""
    forecast = ForecastRow(
        job_id=job_id,
        t=0,
        organization="physics",
        median=median,
        early=median - 10,
        late=median + 10,
        drawn_early=median - 10,
        drawn_late=median + 10,
        within_hour=50,
        waits_for="turn",
    )
    return SaidStart(forecast=forecast, by_slurm=by_slurm)


def test_errors_are_compared_where_both_said_something_of_a_job_that_started() -> None:
    everything = [said(1, 100, 160), said(1, 120, 130), said(2, 50, None), said(3, 10, 10)]
    assert errors_of(everything, {1: 105, 2: 90}) == StartErrors(
        forecasts=3, coverage=1 / 3, compared=2, error_seconds=10.0, squeue_error_seconds=40.0
    )


def test_without_any_start_there_is_no_error() -> None:
    assert errors_of([said(1, 100, 160)], {}) == StartErrors(
        forecasts=0, coverage=0.0, compared=0, error_seconds=None, squeue_error_seconds=None
    )
