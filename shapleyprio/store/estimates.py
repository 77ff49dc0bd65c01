"""Estimated contributions of organizations."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, func, select

from shapleyprio.store.rows import EstimateRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import estimate


class EstimatesView(Scope):
    """Reads estimates."""

    def latest_estimate(self, until: int | None = None) -> list[EstimateRow]:
        """Returns the newest estimate (made for that second or before), by organization."""
        newest = select(func.max(estimate.c.t)).where(self._here(estimate))
        if until is not None:
            newest = newest.where(estimate.c.t <= until)
        query = select(*columns(estimate)).where(
            self._here(estimate), estimate.c.t == newest.scalar_subquery()
        )
        return self._read(EstimateRow, query.order_by(estimate.c.organization))


class Estimates(EstimatesView):
    """Writes estimates."""

    def save_estimate(self, rows: Iterable[EstimateRow]) -> None:
        """Stores an estimate, in place of that of the same second."""
        self._replace(estimate, [values_of(row) for row in rows])

    def _prune_estimates(self, before: int) -> int:
        """Deletes the estimates made before; returns how many rows."""
        statement = delete(estimate).where(self._here(estimate), estimate.c.t < before)
        return self._connection.execute(statement).rowcount
