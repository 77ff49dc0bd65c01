"""Forecasts of starts: the newest of each job, and those that are judged by what happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import bindparam, delete, select, update

from shapleyprio.store.rows.estimates import ForecastRow, ToldForecast
from shapleyprio.store.scope import Scope, values_of
from shapleyprio.store.tables import start_forecast, told_forecast


class ForecastsView(Scope):
    """Reads forecasts."""

    def latest(self) -> list[ForecastRow]:
        """Returns the newest forecasts, in no order."""
        return self._read(ForecastRow, self._rows(start_forecast))

    def of_job(self, job_id: int) -> ForecastRow | None:
        """Returns the newest forecast of a job; None if there is none."""
        query = self._rows(start_forecast, start_forecast.c.job_id == job_id)
        return self._read_one(ForecastRow, query)

    def judged(self, since: int, limit: int, organization: str | None = None) -> list[ToldForecast]:
        """Returns forecasts of jobs that started then or later, those that did last first."""
        query = self._rows(told_forecast, told_forecast.c.start >= since)
        if organization is not None:
            query = query.where(told_forecast.c.organization == organization)
        order = (told_forecast.c.start.desc(), told_forecast.c.job_id, told_forecast.c.t)
        return self._read(ToldForecast, query.order_by(*order).limit(limit))

    def unjudged(self) -> list[tuple[int, int]]:
        """Returns job and seconds to the median of all that were told and not judged yet."""
        ahead = told_forecast.c.median - told_forecast.c.t
        query = select(told_forecast.c.job_id, ahead).where(
            self._here(told_forecast), told_forecast.c.start.is_(None)
        )
        return [(job_id, seconds) for job_id, seconds in self._connection.execute(query)]


class Forecasts(ForecastsView):
    """Writes forecasts."""

    def save(self, rows: Iterable[ForecastRow], told: Iterable[ForecastRow]) -> None:
        """Stores forecasts, in place of those before.

        Args:
            rows: of all jobs.
            told: which of them are to be judged.
        """
        self._clear(start_forecast)
        self._insert(start_forecast, [values_of(row) for row in rows])
        self._replace(told_forecast, [{**values_of(row), "start": None} for row in told])

    def note_starts(self, starts: Mapping[int, int]) -> None:
        """Notes when jobs started, so that what was told of them is judged.

        What was forecast when the job ran already, without anybody knowing, is deleted.

        Args:
            starts: job -> second.
        """
        if not starts:
            return
        unjudged = (
            self._here(told_forecast),
            told_forecast.c.job_id == bindparam("of_job"),
            told_forecast.c.start.is_(None),
        )
        given = [{"of_job": job_id, "second": start} for job_id, start in starts.items()]
        later = told_forecast.c.t > bindparam("second")
        self._connection.execute(delete(told_forecast).where(*unjudged, later), given)
        change = update(told_forecast).where(*unjudged).values(start=bindparam("second"))
        self._connection.execute(change, given)

    def prune(self, before: int) -> int:
        """Deletes what was told before; returns how many rows."""
        return self._delete_some(told_forecast, told_forecast.c.t < before, told_forecast.c.t)
