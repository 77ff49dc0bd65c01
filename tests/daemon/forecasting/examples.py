"""Forecasts to test with."""

from __future__ import annotations

from shapleyprio.store import ForecastRow


def forecast(job_id: int, t: int, ahead: int = 600) -> ForecastRow:
    """One of physics' job: so long ahead, from half of it to twice as long, half within an hour."""
    return ForecastRow(
        job_id=job_id,
        t=t,
        organization="physics",
        median=t + ahead,
        early=t + ahead // 2,
        late=t + 2 * ahead,
        drawn_early=t + ahead // 2,
        drawn_late=t + 2 * ahead,
        within_hour=50,
        waits_for="turn",
    )
