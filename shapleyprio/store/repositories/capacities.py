"""How many processors the organizations bring to which partitions, and since when."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
    """Writes capacities."""

    def observe_capacities(
        self, usable: Mapping[str, Mapping[tuple[str, ...], int]], second: int
    ) -> None:
        """Stores which organizations bring other processors than before.

        Args:
            usable: organization -> its processors, as in `CapacityRow`; one that is missing brings
                none.
            second: from which it is so; not before what is stored.
        """
        known = {row.organization: row.processors for row in self.capacities()}
        nothing: Mapping[tuple[str, ...], int] = {}
        present = dict.fromkeys(known, nothing) | dict(usable)
        changed = [
            CapacityRow(organization=name, since=second, processors=processors)
            for name, processors in present.items()
            if known.get(name) != processors
        ]
        self._replace(capacity, [values_of(row) for row in changed])

    def prune_capacities(self, before: int) -> None:
        """Deletes those that others had taken the place of by then."""
        rows = [row for row in self.capacities() if row.since <= before]
        last = {row.organization: row.since for row in rows}
        old = [row for row in rows if row.since < last[row.organization]]
        keys = [{"organization": row.organization, "since": row.since} for row in old]
        self._delete(capacity, keys)

    def correct_capacities(
        self, organizations: Collection[str], rows: Sequence[CapacityRow], since: int
    ) -> None:
        """Makes these rows all that is known of some organizations from that second on.

        Args:
            organizations: whose.
            rows: none of an earlier second.
            since: seconds since the epoch.
        """
        old = [row for row in self.capacities() if row.since >= since]
        keys = [{"organization": row.organization, "since": row.since} for row in old]
        self._delete(capacity, [key for key in keys if key["organization"] in organizations])
        self._insert(capacity, [values_of(row) for row in rows])
