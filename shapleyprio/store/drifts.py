"""How far from fair the replayed windows were."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, func, select

from shapleyprio.store.rows import DriftRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import drift


class DriftsView(Scope):
    """Reads drifts."""

    def latest_drifts(self) -> list[DriftRow]:
        """Those of the newest window, by organization and schedule."""
        newest = select(func.max(drift.c.t)).where(self._here(drift)).scalar_subquery()
        query = select(*columns(drift)).where(self._here(drift), drift.c.t == newest)
        return self._read(DriftRow, query.order_by(drift.c.organization, drift.c.schedule))

    def drifts(
        self, since: int = 0, organization: str | None = None, limit: int = 1000
    ) -> list[DriftRow]:
        """Those (of that organization) of windows that ended at `since` or later, newest first."""
        query = select(*columns(drift)).where(self._here(drift), drift.c.t >= since)
        if organization is not None:
            query = query.where(drift.c.organization == organization)
        order = (drift.c.t.desc(), drift.c.organization, drift.c.schedule)
        return self._read(DriftRow, query.order_by(*order).limit(limit))


class Drifts(DriftsView):
    """Writes drifts."""

    def save_drifts(self, rows: Iterable[DriftRow]) -> None:
        """Stores drifts, in place of those of the same window's end."""
        self._replace(drift, [values_of(row) for row in rows])

    def _prune_drifts(self, before: int) -> int:
        """Deletes those of windows that ended before; returns how many rows."""
        statement = delete(drift).where(self._here(drift), drift.c.t < before)
        return self._connection.execute(statement).rowcount
