"""Pauses: when nothing steered the cluster, for an admin had said so."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select, update

from shapleyprio.store.rows import PauseRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import pause


class PausesView(Scope):
    """Reads pauses."""

    def pause(self) -> PauseRow | None:
        """Returns the pause that lasts; None if nothing is paused."""
        query = select(*columns(pause)).where(self._here(pause), pause.c.until.is_(None))
        return next(iter(self._read(PauseRow, query)), None)

    def pauses(self, since: int = 0) -> list[PauseRow]:
        """Returns the pauses that lasted at `since` or began later, the oldest first."""
        query = select(*columns(pause)).where(self._here(pause))
        rows = self._read(PauseRow, query.order_by(pause.c.since))
        return [row for row in rows if row.until is None or row.until > since]


class Pauses(PausesView):
    """Writes pauses."""

    def begin_pause(self, row: PauseRow) -> PauseRow | None:
        """Begins a pause, unless one lasts: returns that, and leaves it as it is."""
        lasting = self.pause()
        if lasting is None:
            self._replace(pause, [values_of(row)])
        return lasting

    def end_pause(self, until: int, user: str) -> PauseRow | None:
        """Ends the pause that lasts, and returns it as it was; None if nothing is paused."""
        lasting = self.pause()
        if lasting is not None:
            self._connection.execute(
                update(pause)
                .where(self._here(pause), pause.c.since == lasting.since)
                .values(until=max(until, lasting.since), resumed_by=user)
            )
        return lasting

    def put_pauses(self, rows: Iterable[PauseRow]) -> None:
        """Stores pauses, in place of those that began at the same seconds."""
        self._replace(pause, [values_of(row) for row in rows])

    def _prune_pauses(self, before: int) -> int:
        """Deletes pauses that had ended by then; returns how many rows."""
        since = pause.c.since  # for which there is an index
        return self._delete_some(pause, (since < before) & (pause.c.until < before), since)
