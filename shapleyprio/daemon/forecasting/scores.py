"""What forecasts were worth, by how long ahead they were made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from shapleyprio.common.wording import DAY, HOUR
from shapleyprio.store import LATER, ForecastRow, ToldForecast, View

LEADS = {
    "up to 10 min": 600,
    "up to 1 h": HOUR,
    "up to 6 h": 6 * HOUR,
    "up to 1 d": DAY,
    "over 1 d": LATER,
}
"""How long ahead a median lies at most -> in seconds. One forecast in each is judged of a job."""

JUDGED_SECONDS = 30 * DAY
"""Forecasts are judged by the starts of so long."""

MOST_JUDGED = 5_000
"""So many of them, the newest."""


def lead_of(ahead: int) -> str:
    """Names how long ahead a median is.

    >>> lead_of(600), lead_of(601)
    ('up to 10 min', 'up to 1 h')
    """
    return next(name for name, most in LEADS.items() if ahead <= most)


def to_judge(
    rows: Iterable[ForecastRow], open_forecasts: Iterable[tuple[int, int]]
) -> list[ForecastRow]:
    """Returns which forecasts are to be judged: of each job the first one of every lead.

    Args:
        rows: newest forecasts.
        open_forecasts: job and seconds to the median of all that are to be judged so far.
    """
    known = {(job_id, lead_of(ahead)) for job_id, ahead in open_forecasts}
    return [row for row in rows if (row.job_id, lead_of(row.median - row.t)) not in known]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastScore:
    """What forecasts of one lead were worth.

    Attributes:
        lead: one of LEADS.
        count: how many were judged.
        coverage: share of the intervals in which the jobs started.
        error: median of the absolute errors of the median, in seconds.
    """

    lead: str
    count: int
    coverage: float
    error: float

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "lead": self.lead,
            "forecasts": self.count,
            "coverage": self.coverage,
            "error_seconds": self.error,
        }


def scores_of(view: View, t: int) -> list[ForecastScore]:
    """Returns the scores of the last month's forecasts, the shortest lead first.

    Args:
        view: of the cluster.
        t: now.
    """
    found: dict[str, list[ToldForecast]] = {lead: [] for lead in LEADS}
    for row in view.forecasts.judged(t - JUDGED_SECONDS, MOST_JUDGED):
        found[lead_of(row.median - row.t)].append(row)
    return [_score(lead, rows) for lead, rows in found.items() if rows]


def _score(lead: str, rows: Sequence[ToldForecast]) -> ForecastScore:
    return ForecastScore(
        lead=lead,
        count=len(rows),
        coverage=sum(row.held for row in rows) / len(rows),
        error=float(median(abs(row.median - (row.start or row.t)) for row in rows)),
    )
