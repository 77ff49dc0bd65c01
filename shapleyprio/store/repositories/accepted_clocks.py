"""Clocks of the controller that admins have accepted though they were behind the ledger."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Table, select, true

from shapleyprio.store.rows import AcceptedClockRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import (
    accepted_clock,
    account,
    capacity,
    exception,
    node,
    pause,
    steering,
)


class AcceptedClocksView(Scope):
    """Reads which clocks were accepted."""

    def accepted_clocks(self, since: int = 0) -> list[AcceptedClockRow]:
        """Returns those that were accepted at `since` or later, the oldest first."""
        at = accepted_clock.c.at
        query = select(*columns(accepted_clock)).where(self._here(accepted_clock), at >= since)
        return self._read(AcceptedClockRow, query.order_by(at))


class AcceptedClocks(AcceptedClocksView):
    """Writes which clocks were accepted."""

    def note_accepted_clock(self, row: AcceptedClockRow) -> None:
        """Notes it, and lets what is so from a second ahead of that clock be so from it on."""
        self._replace(accepted_clock, [values_of(row)])
        for table in (steering, capacity, node, account):
            self._bring_back(table, row.at, true())
        self._bring_back(pause, row.at, pause.c.until.is_(None))
        self._bring_back(exception, row.at, exception.c.ended.is_(None))

    def _bring_back(self, table: Table, now: int, meant: ColumnElement[bool]) -> None:
        """Lets rows that begin after a second begin then; of several of one key, the last one."""
        since = table.c.since
        query = select(*columns(table)).where(self._here(table), since > now, meant)
        ahead = [dict(row) for row in self._connection.execute(query.order_by(since)).mappings()]
        keys = [key.name for key in table.primary_key if key.name not in {"cluster", "since"}]
        self._delete(table, [{name: row[name] for name in ("since", *keys)} for row in ahead])
        last = {tuple(row[name] for name in keys): row | {"since": now} for row in ahead}
        self._replace(table, list(last.values()))

    def _prune_accepted_clocks(self, before: int) -> int:
        """Deletes those accepted before; returns how many rows."""
        return self._delete_some(accepted_clock, accepted_clock.c.at < before, accepted_clock.c.at)
