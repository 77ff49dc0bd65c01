"""The drift of the replayed windows."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, select

from shapleyprio.store.rows import DriftRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import drift


class DriftsView(Scope):
    """Reads drifts."""

    def drifts(
        self, since: int = 0, organization: str | None = None, limit: int = 1000
    ) -> list[DriftRow]:
        """Returns drifts (of that organization) of windows that ended at `since` or later.

        The newest come first.
        """
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
        """Deletes the drifts of windows that ended before; returns how many rows."""
        statement = delete(drift).where(self._here(drift), drift.c.t < before)
        return self._connection.execute(statement).rowcount
