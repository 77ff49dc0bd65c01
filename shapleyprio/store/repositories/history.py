"""Cycles, the standings of organizations cycle by cycle, and the drift of replayed windows."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import case, func, select

from shapleyprio.store.rows import CycleRow, DriftRow, Interruption, StandingRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import cycle, drift, standing


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
        return self._delete_some(drift, drift.c.t < before, drift.c.t)


class HistoryView(Scope):
    """Reads cycles and standings."""

    def next_cycle(self) -> int:
        """Returns the number for a new cycle; numbers are not used twice."""
        query = select(func.max(cycle.c.number)).where(self._here(cycle))
        return (self._connection.execute(query).scalar_one() or 0) + 1

    def last_cycle(self, *, outcome: str | None = None) -> CycleRow | None:
        """Returns the newest cycle (with that outcome)."""
        query = select(*columns(cycle)).where(self._here(cycle))
        if outcome is not None:
            query = query.where(cycle.c.outcome == outcome)
        rows = self._read(CycleRow, query.order_by(cycle.c.number.desc()).limit(1))
        return rows[0] if rows else None

    def cycle(self, number: int) -> CycleRow | None:
        """Returns the cycle with that number, None if it is not stored."""
        query = select(*columns(cycle)).where(self._here(cycle), cycle.c.number == number)
        rows = self._read(CycleRow, query)
        return rows[0] if rows else None

    def cycles(self, since: int = 0, limit: int = 20) -> list[CycleRow]:
        """Returns cycles that started at `since` or later, newest first."""
        query = select(*columns(cycle)).where(self._here(cycle))
        if since:  # or a database may find all cycles by when they started, and then sort them
            query = query.where(cycle.c.started >= since)
        return self._read(CycleRow, query.order_by(cycle.c.number.desc()).limit(limit))

    def interruptions(self, since: int, patience: int) -> list[Interruption]:
        """Returns what kept cycles from succeeding that began at `since` or later, in order.

        Args:
            since: second.
            patience: seconds from the end of a cycle to the begin of the next one that are usual.
        """
        order = cycle.c.number
        before = (
            select(
                *(cycle.c.number, cycle.c.started, cycle.c.finished),
                *(cycle.c.outcome, cycle.c.message),
                func.lag(cycle.c.number).over(order_by=order).label("last"),
                func.lag(cycle.c.finished).over(order_by=order).label("ended"),
            )
            .where(self._here(cycle), cycle.c.started >= since)
            .subquery()
        )
        # where numbers are missing cycles were pruned
        late = (before.c.last == before.c.number - 1) & (
            before.c.started - before.c.ended > patience
        )
        rows = self._connection.execute(
            select(before, case((late, before.c.ended)).label("silent_since"))
            .where(late | (before.c.message != ""))
            .order_by(before.c.number)
        )
        found: list[Interruption] = []
        following = 0
        for row in rows:
            if row.silent_since is not None:
                found.append(Interruption(row.silent_since, row.started))
            elif found and row.number == following and found[-1].outcome == row.outcome:
                last = found.pop()
                found.append(
                    last._replace(end=row.finished, cycles=last.cycles + 1, message=row.message)
                )
                following = row.number + 1
                continue
            if row.message:
                found.append(Interruption(row.started, row.finished, 1, row.outcome, row.message))
                following = row.number + 1
        return found

    def slurm_versions(self, since: int) -> list[tuple[int, str, str]]:
        """Returns when cycles found another release of Slurm than before, that one and this one."""
        seen = (
            select(
                cycle.c.started,
                cycle.c.slurm_version,
                func.lag(cycle.c.slurm_version).over(order_by=cycle.c.number).label("before"),
            )
            .where(self._here(cycle), cycle.c.slurm_version != "", cycle.c.started >= since)
            .subquery()
        )
        query = select(seen.c.started, seen.c.before, seen.c.slurm_version)
        rows = query.where(seen.c.before != seen.c.slurm_version).order_by(seen.c.started)
        return [(at, before, after) for at, before, after in self._connection.execute(rows)]

    def releases(self) -> list[tuple[int, str]]:
        """Returns the releases of Slurm, each with the begin of the first cycle that met it."""
        first = func.min(cycle.c.started)
        query = select(first, cycle.c.slurm_version).where(
            self._here(cycle), cycle.c.slurm_version != ""
        )
        rows = self._connection.execute(query.group_by(cycle.c.slurm_version).order_by(first))
        return [(second, version) for second, version in rows]

    def missed(self, since: int) -> int:
        """Counts the jobs that the table of points missed, in cycles started then or later."""
        query = select(func.sum(cycle.c.missed))
        return int(
            self._connection.execute(
                query.where(self._here(cycle), cycle.c.started >= since)
            ).scalar_one()
            or 0
        )

    def latest_standings(self) -> list[StandingRow]:
        """Returns standings of the newest cycle that has some, by organization."""
        newest = select(func.max(standing.c.cycle)).where(self._here(standing)).scalar_subquery()
        query = select(*columns(standing)).where(self._here(standing), standing.c.cycle == newest)
        return self._read(StandingRow, query.order_by(standing.c.organization))

    def standings(
        self, since: int, organization: str | None = None, limit: int = 1000
    ) -> list[StandingRow]:
        """Returns standings (of that organization) at `since` or later, newest first."""
        query = select(*columns(standing)).where(self._here(standing), standing.c.t >= since)
        if organization is not None:
            query = query.where(standing.c.organization == organization)
        order = (standing.c.t.desc(), standing.c.cycle.desc(), standing.c.organization)
        return self._read(StandingRow, query.order_by(*order).limit(limit))


class History(HistoryView):
    """Writes cycles and standings."""

    def save_cycle(self, row: CycleRow) -> None:
        """Stores a cycle, in place of one with the same number."""
        self._replace(cycle, [values_of(row)])

    def save_standings(self, rows: Iterable[StandingRow]) -> None:
        """Stores standings, in place of those of the same cycle and organization."""
        self._replace(standing, [values_of(row) for row in rows])

    def _prune_cycles(self, before: int) -> int:
        """Deletes cycles older than `before` and their standings, returns how many rows.

        The newest cycle of each outcome stays: when it last went well remains known.
        """
        outcomes = self._connection.execute(
            select(cycle.c.outcome).where(self._here(cycle), cycle.c.started < before).distinct()
        ).scalars()
        newest = [self.last_cycle(outcome=outcome) for outcome in outcomes.all()]
        kept = {row.number for row in newest if row is not None}
        old = (cycle.c.started < before) & cycle.c.number.not_in(kept)
        shown = (standing.c.t < before) & standing.c.cycle.not_in(kept)
        return self._delete_some(cycle, old, cycle.c.number) + self._delete_some(
            standing, shown, standing.c.t
        )
