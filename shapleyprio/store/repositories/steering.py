"""Which rule ranked and which channel carried priorities, and since when."""

from __future__ import annotations

from sqlalchemy import func, or_, select

from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store.rows import SteeringRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import steering


class SteeringHistoryView(Scope):
    """Reads what steered."""

    def steering(self, since: int = 0, until: int | None = None) -> list[SteeringRow]:
        """Returns what steered at `since` and from then on (before `until`), the oldest first."""
        query = select(*columns(steering)).where(self._here(steering))
        if until is not None:
            query = query.where(steering.c.since < until)
        rows = self._read(SteeringRow, query.order_by(steering.c.since))
        before = sum(row.since <= since for row in rows)
        return rows[max(before - 1, 0) :]


class SteeringHistory(SteeringHistoryView):
    """Writes what steers."""

    def note_steering(self, row: SteeringRow) -> None:
        """Stores what steers from now on, if that has changed."""
        last = self.steering()[-1:]
        if not last or _what(last[0]) != _what(row):
            self._replace(steering, [values_of(row)])

    def nothing_steers(self, since: int) -> None:
        """Notes for each of the cluster's ledgers that nothing steers any more."""
        cluster = cluster_behind(self.cluster)
        ledger = steering.c.cluster
        known = (
            select(ledger)
            .distinct()
            .where(or_(ledger == cluster, ledger.startswith(f"{cluster}/", autoescape=True)))
        )
        for name in self._connection.execute(known).scalars().all():
            over = SteeringRow(since=since, rule="", chosen="", channel="")
            SteeringHistory(self._connection, name).note_steering(over)

    def _prune_steering(self, before: int) -> int:
        """Deletes what did not steer any more by then; returns how many rows."""
        in_force = select(func.max(steering.c.since)).where(
            self._here(steering), steering.c.since <= before
        )
        last = self._connection.execute(in_force).scalar_one()
        return self._delete_some(steering, steering.c.since < (last or 0), steering.c.since)


def _what(row: SteeringRow) -> tuple[str, str, str]:
    return row.rule, row.chosen, row.channel
