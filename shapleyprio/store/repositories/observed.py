"""What cycles observe of a cluster: nodes, accounts, capacities, jobs that wait, unreadable lines.

Users can have a hand in lines that cannot be read, and make as many different ones as they like. So
only a bounded number is kept, and all others are counted, in one row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, TypeVar

from sqlalchemy import func, select

from shapleyprio.slurm.port import Malformed
from shapleyprio.store.rows.accounting import (
    AccountRow,
    CapacityRow,
    KeptBack,
    NodeRow,
    PendingJobs,
    QuarantinedLine,
)
from shapleyprio.store.scope import Scope, values_of
from shapleyprio.store.tables import (
    account,
    capacity,
    kept_back,
    node,
    pending_jobs,
    quarantined_line,
)

Row = TypeVar("Row", NodeRow, AccountRow)
MOST_LINES = 1000
"""Different lines that are kept of a cluster."""

MOST_LINES_AFTER_PRUNING = 500
"""So that there is room again for new lines."""

ONLY_COUNTED = Malformed(
    source="quarantine",
    text="further lines, which are only counted",
    reason=f"{MOST_LINES} different lines are kept at most",
)
"""Stands for the lines that are not kept."""

_COUNTER = ""  # in the place of a digest; sorts first


class ObservationsView(Scope):
    """Reads what was observed."""

    def capacities(self) -> list[CapacityRow]:
        """Returns every change of every organization's processors, by second and organization."""
        order = (capacity.c.since, capacity.c.organization)
        return self._read(CapacityRow, self._rows(capacity).order_by(*order))

    def node_rows(self) -> list[NodeRow]:
        """Returns every change of every node, by name, the oldest first."""
        return self._read(NodeRow, self._rows(node).order_by(node.c.name, node.c.since))

    def account_rows(self) -> list[AccountRow]:
        """Returns every change of every account's place in the tree, by name, the oldest first."""
        order = (account.c.name, account.c.since)
        return self._read(AccountRow, self._rows(account).order_by(*order))

    def kept_back(self) -> dict[int, KeptBack]:
        """Returns job id -> what is known of it."""
        return {row.job_id: row for row in self._read(KeptBack, self._rows(kept_back))}

    def pending_jobs(self) -> list[PendingJobs]:
        """Returns the jobs that waited at the last cycle, by organization and partition."""
        order = (pending_jobs.c.organization, pending_jobs.c.partition)
        return self._read(PendingJobs, self._rows(pending_jobs).order_by(*order))

    def quarantined(self, limit: int = 20) -> list[QuarantinedLine]:
        """Returns lines that could not be read, those seen last first.

        One of them may be `ONLY_COUNTED`, with how often lines were met that are not kept.
        """
        rows = self._connection.execute(
            select(quarantined_line)
            .where(self._here(quarantined_line))
            .order_by(quarantined_line.c.last_seen.desc(), quarantined_line.c.digest)
            .limit(limit)
        )
        return [
            QuarantinedLine(
                line=Malformed(row.source, row.text, row.reason),
                first_seen=row.first_seen,
                last_seen=row.last_seen,
                times=row.times,
            )
            for row in rows
        ]

    def quarantined_count(self) -> int:
        """Counts what `quarantined` has: kept lines, and one more if others are only counted."""
        query = (
            select(func.count()).select_from(quarantined_line).where(self._here(quarantined_line))
        )
        return self._connection.execute(query).scalar_one()


class Observations(ObservationsView):
    """Writes what is observed."""

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

    def observe_layout(
        self,
        nodes: Mapping[str, tuple[int, tuple[str, ...]]],
        parents: Mapping[str, str | None],
        second: int,
        *,
        opened: int,
    ) -> None:
        """Stores which nodes and accounts are other than before.

        Args:
            nodes: name -> processors and partitions, as in `NodeRow`; one that is missing is gone.
            parents: account -> parent, as in `AccountRow`.
            second: from which it is so; not before what is stored.
            opened: since when what is seen at the first time is taken to have been so.
        """
        known = self.node_rows()
        since = second if known else opened
        gone: dict[str, tuple[int, tuple[str, ...]]] = {row.name: (0, ()) for row in known}
        seen = [
            NodeRow(name=name, since=since, processors=processors, partitions=partitions)
            for name, (processors, partitions) in (gone | dict(nodes)).items()
        ]
        self._replace(node, [values_of(row) for row in _changed(known, seen)])
        tree = self.account_rows()
        since = second if tree else opened
        placed = [
            AccountRow(name=name, since=since, parent=parent) for name, parent in parents.items()
        ]
        self._replace(account, [values_of(row) for row in _changed(tree, placed)])

    def put_layout(self, nodes: Sequence[NodeRow], accounts: Sequence[AccountRow]) -> None:
        """Stores rows, in place of those of the same names and seconds."""
        self._replace(node, [values_of(row) for row in nodes])
        self._replace(account, [values_of(row) for row in accounts])

    def prune_layout(self, before: int) -> None:
        """Deletes rows that others had taken the place of by then."""
        self._delete(node, _outdated(self.node_rows(), before))
        self._delete(account, _outdated(self.account_rows(), before))

    def save_kept_back(self, rows: Iterable[KeptBack]) -> None:
        """Stores rows, each in place of that of the same job."""
        self._replace(kept_back, [values_of(row) for row in rows])

    def prune_kept_back(self, live: Collection[int]) -> int:
        """Forgets the jobs that are gone, and returns how many they were.

        Args:
            live: ids of all jobs that wait or run.
        """
        gone = self.kept_back().keys() - set(live)
        self._delete(kept_back, [{"job_id": job_id} for job_id in gone])
        return len(gone)

    def save_pending_jobs(self, rows: Iterable[PendingJobs]) -> None:
        """Stores which jobs wait, in place of those of the cycle before."""
        self._clear(pending_jobs)
        self._insert(pending_jobs, [values_of(row) for row in rows])

    def quarantine(self, lines: Iterable[Malformed], at: int, *, more: int = 0) -> int:
        """Keeps lines that could not be read, each once, with how often it was met.

        Where `MOST_LINES` are kept already, others are counted only.

        Args:
            lines: as met.
            at: now.
            more: lines that were met beside these, of which only the number is known.

        Returns:
            How many are kept that were not known.
        """
        met: dict[str, Malformed] = {}
        times: Counter[str] = Counter()
        for line in lines:
            digest = _digest(line)
            met[digest] = line
            times[digest] += 1
        times[_COUNTER] += more
        if not times.total():
            return 0
        columns = quarantined_line.c
        known = {
            row.digest: row
            for row in self._connection.execute(
                select(columns.digest, columns.first_seen, columns.last_seen, columns.times).where(
                    self._here(quarantined_line)
                )
            )
        }
        unknown = [digest for digest in met if digest not in known]
        room = max(MOST_LINES - len(known.keys() - {_COUNTER}), 0)
        for digest in unknown[room:]:
            times[_COUNTER] += times.pop(digest)
        met[_COUNTER] = ONLY_COUNTED
        self._replace(
            quarantined_line,
            [
                {
                    "digest": digest,
                    **values_of(met[digest]),
                    "first_seen": known[digest].first_seen if digest in known else at,
                    "last_seen": max(known[digest].last_seen, at) if digest in known else at,
                    "times": number + (known[digest].times if digest in known else 0),
                }
                for digest, number in times.items()
                if number
            ],
        )
        return len(unknown[:room])

    def prune_quarantined(self, before: int) -> int:
        """Deletes lines that were last met before, and those beyond the number that may stay.

        How often the latter were met is still counted.

        Args:
            before: second.

        Returns:
            how many.
        """
        columns = quarantined_line.c
        deleted = self._clear(quarantined_line, columns.last_seen < before)
        crowded = self._connection.execute(
            select(columns.digest, columns.last_seen, columns.times)
            .where(
                self._here(quarantined_line),
                columns.last_seen >= before,  # all that are left; this way an index is used
                columns.digest != _COUNTER,
            )
            .order_by(columns.last_seen.desc(), columns.digest)
            .offset(MOST_LINES_AFTER_PRUNING)
            .limit(MOST_LINES)
        ).all()
        if crowded:
            self._delete(quarantined_line, [{"digest": row.digest} for row in crowded])
            self.quarantine((), crowded[0].last_seen, more=sum(row.times for row in crowded))
        return deleted + len(crowded)


def _outdated(rows: Iterable[Row], before: int) -> list[dict[str, Any]]:
    """Returns the keys of rows, sorted by name and second, that others follow by then."""
    return [
        {"name": row.name, "since": row.since}
        for row, following in pairwise(rows)
        if following.name == row.name and following.since <= before
    ]


def _changed(known: Iterable[Row], seen: Iterable[Row]) -> list[Row]:
    """Returns the rows that say something else than the last ones of their names."""
    last = {row.name: row for row in known}
    return [
        row
        for row in seen
        if row.name not in last or replace(last[row.name], since=row.since) != row
    ]


def _digest(line: Malformed) -> str:
    return sha256(f"{line.source}\0{line.text}".encode("utf-8", "backslashreplace")).hexdigest()
