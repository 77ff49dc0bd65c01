"""Estimated contributions of organizations, and the seed that they are drawn by."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import func, select

from shapleyprio.store.rows.estimates import EstimateRow, WaitingWork
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import estimate, sampling, waiting_work


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
