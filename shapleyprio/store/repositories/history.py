"""Cycles, and what steered, was configured, accepted and replayed, as time went by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Table,
    case,
    func,
    select,
    true,
    update,
)

from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store.rows.cycles import (
    AcceptedClockRow,
    ConfigurationRow,
    CycleRow,
    Interruption,
    StandingRow,
    SteeringRow,
)
from shapleyprio.store.rows.estimates import DriftRow
from shapleyprio.store.scope import Scope, of_cluster, values_of
from shapleyprio.store.tables import (
    accepted_clock,
    account,
    capacity,
    configuration,
    cycle,
    drift,
    exception,
    kept_back,
    node,
    pause,
    standing,
    steering,
    work_after_end_progress,
)


class HistoryView(Scope):
    """Reads what was."""

    def next_cycle(self) -> int:
        """Returns the number for a new cycle; numbers are not used twice."""
        return self._last(cycle.c.number) + 1

    def last_cycle(self, *, outcome: str | None = None) -> CycleRow | None:
        """Returns the newest cycle (with that outcome)."""
        query = self._rows(cycle)
        if outcome is not None:
            query = query.where(cycle.c.outcome == outcome)
        return self._read_one(CycleRow, query.order_by(cycle.c.number.desc()).limit(1))

    def cycle(self, number: int) -> CycleRow | None:
        """Returns the cycle with that number, None if it is not stored."""
        return self._read_one(CycleRow, self._rows(cycle, cycle.c.number == number))

    def cycles(self, since: int = 0, limit: int = 20) -> list[CycleRow]:
        """Returns cycles that started at `since` or later, newest first."""
        query = self._rows(cycle)
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
        missed = select(func.sum(cycle.c.missed))
        query = missed.where(self._here(cycle), cycle.c.started >= since)
        return int(self._connection.execute(query).scalar_one() or 0)

    def latest_standings(self, before: int | None = None) -> list[StandingRow]:
        """Returns standings of the newest cycle that has some (before that second).

        They are sorted by organization.
        """
        cycles = select(func.max(standing.c.cycle)).where(self._here(standing))
        if before is not None:
            cycles = cycles.where(standing.c.t < before)
        newest = cycles.scalar_subquery()
        query = self._rows(standing, standing.c.cycle == newest)
        return self._read(StandingRow, query.order_by(standing.c.organization))

    def standings(
        self, since: int, organization: str | None = None, limit: int = 1000
    ) -> list[StandingRow]:
        """Returns standings (of that organization) at `since` or later, newest first."""
        query = self._rows(standing, standing.c.t >= since)
        if organization is not None:
            query = query.where(standing.c.organization == organization)
        order = (standing.c.cycle.desc(), standing.c.organization)  # a clock may go back
        return self._read(StandingRow, query.order_by(*order).limit(limit))

    def steering(self, since: int = 0, until: int | None = None) -> list[SteeringRow]:
        """Returns what steered at `since` and from then on (before `until`), the oldest first."""
        query = self._rows(steering)
        if until is not None:
            query = query.where(steering.c.since < until)
        rows = self._read(SteeringRow, query.order_by(steering.c.since))
        before = sum(row.since <= since for row in rows)
        return rows[max(before - 1, 0) :]

    def configurations(self, since: int) -> list[ConfigurationRow]:
        """Returns those of `since` and later, the oldest first, behind the one then in force."""
        in_force = self._in_force(since)
        query = self._rows(
            configuration, (configuration.c.at >= since) | (configuration.c.number == in_force)
        )
        return self._read(ConfigurationRow, query.order_by(configuration.c.number))

    def accepted_clocks(self, since: int = 0) -> list[AcceptedClockRow]:
        """Returns those that were accepted at `since` or later, the oldest first."""
        query = self._rows(accepted_clock, accepted_clock.c.at >= since)
        return self._read(AcceptedClockRow, query.order_by(accepted_clock.c.at))

    def drifts(
        self, since: int = 0, organization: str | None = None, limit: int = 1000
    ) -> list[DriftRow]:
        """Returns drifts (of that organization) of windows that ended at `since` or later.

        The newest come first.
        """
        query = self._rows(drift, drift.c.t >= since)
        if organization is not None:
            query = query.where(drift.c.organization == organization)
        order = (drift.c.t.desc(), drift.c.organization, drift.c.schedule)
        return self._read(DriftRow, query.order_by(*order).limit(limit))

    def _in_force(self, at: int) -> int:
        """Returns the number of the configuration that was in force before a second; 0 for none."""
        made, taken_over = configuration.c.at < at, configuration.c.refused == ""
        return self._last(configuration.c.number, made, taken_over)


class History(HistoryView):
    """Writes what is to be on record."""

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

    def note_steering(self, row: SteeringRow) -> None:
        """Stores what steers from now on, if that has changed."""
        last = self.steering()[-1:]
        if not last or _what(last[0]) != _what(row):
            self._replace(steering, [values_of(row)])

    def nothing_steers(self, since: int) -> None:
        """Notes for each of the cluster's ledgers that nothing steers any more."""
        cluster = cluster_behind(self.cluster)
        known = select(steering.c.cluster).distinct().where(of_cluster(steering, cluster))
        for name in self._connection.execute(known).scalars().all():
            over = SteeringRow(since=since, rule="", chosen="", channel="")
            History(self._connection, name).note_steering(over)

    def _prune_steering(self, before: int) -> int:
        """Deletes what did not steer any more by then; returns how many rows."""
        last = self._last(steering.c.since, steering.c.since <= before)
        return self._delete_some(steering, steering.c.since < last, steering.c.since)

    def note_configuration(self, at: int, version: str, written: Mapping[str, str]) -> None:
        """Stores the configuration that is taken over, if it or the version is another one."""
        last = [row for row in self.configurations(at + 1) if not row.refused]
        if not last or (last[-1].version, last[-1].written) != (version, dict(written)):
            self._note(at, version, written, "")

    def note_refusal(self, at: int, version: str, why: str) -> None:
        """Stores that a configuration was refused."""
        self._note(at, version, {}, why)

    def _note(self, at: int, version: str, written: Mapping[str, str], refused: str) -> None:
        number = self._last(configuration.c.number) + 1
        row = ConfigurationRow(
            number=number, at=at, version=version, written=written, refused=refused
        )
        self._insert(configuration, [values_of(row)])

    def _prune_configurations(self, before: int) -> int:
        """Deletes those before the one that was in force then; returns how many rows."""
        old = configuration.c.number < self._in_force(before)
        return self._delete_some(configuration, old, configuration.c.number)

    def note_accepted_clock(self, row: AcceptedClockRow) -> None:
        """Notes it, and lets what is so from a second ahead of that clock be so from it on."""
        self._replace(accepted_clock, [values_of(row)])
        for table in (steering, capacity, node, account):
            self._bring_back(table, row.at, true())
        self._bring_back(pause, row.at, pause.c.until.is_(None))
        self._bring_back(exception, row.at, exception.c.ended.is_(None))
        for moment in (
            *(kept_back.c.counts_since, kept_back.c.kept_since),
            work_after_end_progress.c.until,
        ):
            self._connection.execute(
                update(moment.table)
                .where(self._here(moment.table), moment > row.at)
                .values({moment.name: row.at})
            )
        self._clear(drift, drift.c.t > row.at)

    def _bring_back(self, table: Table, now: int, meant: ColumnElement[bool]) -> None:
        """Lets rows that begin after a second begin then; of several of one key, the last one."""
        since = table.c.since
        query = self._rows(table, since > now, meant).order_by(since)
        ahead: list[dict[str, Any]] = self._read(dict, query)
        keys = [key.name for key in table.primary_key if key.name not in {"cluster", "since"}]
        self._delete(table, [{name: row[name] for name in ("since", *keys)} for row in ahead])
        last = {tuple(row[name] for name in keys): row | {"since": now} for row in ahead}
        self._replace(table, list(last.values()))

    def save_drifts(self, rows: Iterable[DriftRow]) -> None:
        """Stores drifts, in place of those of the same window's end."""
        self._replace(drift, [values_of(row) for row in rows])

    def prune(self, before: int) -> int:
        """Deletes what is older, `PRUNED_AT_ONCE` of each kind; returns how many rows.

        The newest cycle of each outcome stays, and what was in force then.
        """
        return (
            self._prune_cycles(before)
            + self._prune_steering(before)
            + self._prune_configurations(before)
            + self._delete_some(accepted_clock, accepted_clock.c.at < before, accepted_clock.c.at)
            + self._delete_some(drift, drift.c.t < before, drift.c.t)
        )


def _what(row: SteeringRow) -> tuple[str, str, str]:
    return row.rule, row.chosen, row.channel
