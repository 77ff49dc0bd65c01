"""What is estimated beside the cycles: contributions with their seed, and forecasts of starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import bindparam, delete, func, select, update

from shapleyprio.store.rows.estimates import EstimateRow, ForecastRow, ToldForecast, WaitingWork
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import estimate, sampling, start_forecast, told_forecast, waiting_work


class EstimatesView(Scope):
    """Reads estimates."""

    def latest_estimate(self, until: int | None = None) -> list[EstimateRow]:
        """Returns the newest estimate (made for that second or before), by organization."""
        newest = select(func.max(estimate.c.t)).where(self._here(estimate))
        if until is not None:
            newest = newest.where(estimate.c.t <= until)
        query = self._rows(estimate, estimate.c.t == newest.scalar_subquery())
        return self._read(EstimateRow, query.order_by(estimate.c.organization))

    def waiting_work(self) -> list[WaitingWork]:
        """Returns what pending jobs brought into the newest estimate, the most first."""
        query = select(*(column for column in columns(waiting_work) if column.key != "number"))
        rows = query.where(self._here(waiting_work)).order_by(waiting_work.c.number)
        return self._read(WaitingWork, rows)

    def sampling_seed(self) -> int | None:
        """Returns the seed of the draws of coalitions; None before the first estimate."""
        query = select(sampling.c.seed).where(self._here(sampling))
        return self._connection.execute(query).scalar_one_or_none()


class Estimates(EstimatesView):
    """Writes estimates."""

    def save_estimate(self, rows: Iterable[EstimateRow], waiting: Iterable[WaitingWork]) -> None:
        """Stores an estimate, in place of that of the same second.

        Args:
            rows: one for each organization.
            waiting: what pending jobs brought into it, the most first; that of others goes.
        """
        self._replace(estimate, [values_of(row) for row in rows])
        self._clear(waiting_work)
        numbered = ({"number": number, **values_of(row)} for number, row in enumerate(waiting))
        self._insert(waiting_work, list(numbered))

    def keep_sampling_seed(self, drawn: int) -> int:
        """Returns the seed of the draws of coalitions; the first one that was drawn stays."""
        kept = self.sampling_seed()
        if kept is None:
            self._insert(sampling, [{"seed": drawn}])
        return drawn if kept is None else kept

    def forget_estimates(self, since: int) -> None:
        """Deletes the estimates made for that second or later: they rest on what is corrected."""
        self._clear(estimate, estimate.c.t >= since)

    def prune(self, before: int) -> int:
        """Deletes the estimates made before; returns how many rows."""
        return self._delete_some(estimate, estimate.c.t < before, estimate.c.t)


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
