"""How many processors the organizations bring, and since when."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select

from shapleyprio.store.rows import CapacityRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import capacity


class CapacitiesView(Scope):
    """Reads capacities."""

    def capacities(self) -> list[CapacityRow]:
        """Returns every change of every organization's processors, by second and organization."""
        query = select(*columns(capacity)).where(self._here(capacity))
        return self._read(CapacityRow, query.order_by(capacity.c.since, capacity.c.organization))


class Capacities(CapacitiesView):
    """Writes capacities; they are few, and never pruned."""

    def observe_capacities(self, owned: Mapping[str, int], second: int, *, opened: int) -> None:
        """Stores which organizations bring another number of processors than before.

        Args:
            owned: organization -> processors; one that is missing brings none.
            second: from which it is so.
            opened: when the ledger was: what is observed first has been so since then.
        """
        known = {row.organization: row.processors for row in self.capacities()}
        since = second if known else opened
        present = dict.fromkeys(known, 0) | dict(owned)
        changed = [
            CapacityRow(organization=name, since=since, processors=processors)
            for name, processors in present.items()
            if known.get(name) != processors
        ]
        self._replace(capacity, [values_of(row) for row in changed])
