"""A ledger, who holds what and its corrections; and what a pool adds up over ledgers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import get_args

from sqlalchemy import func, select

from shapleyprio.fairness.ledger import Entry
from shapleyprio.fairness.pool import ClusterBalances, Stay
from shapleyprio.fairness.tenure import Kind, Tenure, Tenures
from shapleyprio.fairness.worth import Moments, Trajectory
from shapleyprio.store.rows.accounting import CorrectionRow, Watermark
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import (
    balance,
    correction,
    earlier_ledger,
    ledger,
    standing,
    stay,
    tenure,
    watermark,
)

_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}


class LedgersView(Scope):
    """Reads a ledger."""

    def entries(self, *, earlier: bool = False) -> dict[tuple[str, str], Entry]:
        """Returns (organization, owner) -> moments, to make a Ledger of.

        Args:
            earlier: of what was executed before the cluster's stay in its pool.
        """
        table = earlier_ledger if earlier else ledger
        rows = self._connection.execute(self._rows(table))
        return {
            (organization, owner): Entry(Moments(*moments[:3]), Moments(*moments[3:]))
            for organization, owner, *moments in rows
        }

    def tenures(self) -> Tenures:
        """Returns the history of ownership."""
        rows = self._connection.execute(
            select(tenure).where(self._here(tenure)).order_by(*tenure.primary_key)
        )
        return Tenures(
            Tenure(_KINDS[row.kind], row.name, row.organization, row.since, row.until)
            for row in rows
        )

    def watermark(self) -> Watermark | None:
        """Returns how far the accounts have come; None before the first time."""
        return self._read_one(Watermark, self._rows(watermark))

    def corrections(self) -> list[CorrectionRow]:
        """Returns all that was ever corrected, the oldest first."""
        key = (correction.c.number, correction.c.kind, correction.c.name)
        return self._read(CorrectionRow, self._rows(correction).order_by(*key))

    def next_correction(self) -> int:
        """Returns the number for the next correction; they count up from 1."""
        return self._last(correction.c.number) + 1


class Ledgers(LedgersView):
    """Writes a ledger."""

    def save_entries(
        self, entries: Mapping[tuple[str, str], Entry], *, earlier: bool = False
    ) -> None:
        """Stores entries of the ledger, in place of those of the same pairs.

        Args:
            entries: (organization, owner) -> moments.
            earlier: of what was executed before the cluster's stay in its pool.
        """
        rows = [
            (*pair, *values_of(entry.total).values(), *values_of(entry.folded).values())
            for pair, entry in entries.items()
        ]
        table = earlier_ledger if earlier else ledger
        names = [str(column.key) for column in columns(table)]
        self._replace(table, [dict(zip(names, row, strict=True)) for row in rows])

    def save_tenures(self, histories: Mapping[tuple[Kind, str], Sequence[Tenure]]) -> None:
        """Makes rows the whole history of a node, an account or a partition.

        Args:
            histories: (kind, name) -> rows, oldest first.
        """
        self._delete(tenure, [{"kind": kind, "name": name} for kind, name in histories])
        rows = [
            {**values_of(row), "number": number}
            for history in histories.values()
            for number, row in enumerate(history)
        ]
        self._insert(tenure, rows)

    def save_watermark(self, value: Watermark) -> None:
        """Stores how far the accounts have come."""
        self._replace(watermark, [values_of(value)])

    def save_corrections(self, rows: Iterable[CorrectionRow]) -> None:
        """Stores what one correction changed."""
        self._insert(correction, [values_of(row) for row in rows])


_FOUND = ("cluster", "since", "t", "weight", "all_parts")
_TRAJECTORY = ("value", "rate", "acceleration", "denominator")


class PoolsView(Scope):
    """Reads pools."""

    def stay(self) -> Stay | None:
        """Returns the stay of the cluster in a pool; None if it is in none."""
        return self._read_one(Stay, self._rows(stay))

    def stays(self) -> dict[str, Stay]:
        """Returns the stays of all ledgers in the store, other clusters' among them."""
        return {
            row.pop("cluster"): Stay(**row)
            for row in map(dict, self._connection.execute(select(stay)).mappings())
        }

    def pool_balances(self, pool: str) -> list[ClusterBalances]:
        """Returns what each cluster of a pool, this one among them, has found in each of its stays.

        These, the stays, horizons and organizations are all that a cluster reads of other ones.
        """
        rows = self._connection.execute(
            select(balance)
            .where(balance.c.pool == pool)
            .order_by(balance.c.cluster, balance.c.since)
        ).mappings()
        return [
            ClusterBalances(
                cluster=cluster,
                since=since,
                t=t,
                weight=weight,
                all_parts=all_parts,
                balances={
                    row["organization"]: Trajectory(*(row[name] for name in _TRAJECTORY))
                    for row in found
                },
            )
            for (cluster, since, t, weight, all_parts), found in groupby(
                rows, key=itemgetter(*_FOUND)
            )
        ]

    def horizons(self, clusters: Collection[str]) -> dict[str, int | None]:
        """Returns clusters, as far as they have a ledger here -> age in seconds, None for never."""
        found = self._connection.execute(
            select(watermark.c.cluster, watermark.c.horizon).where(
                watermark.c.cluster.in_(clusters)
            )
        )
        return {row.cluster: row.horizon for row in found}

    def organizations(self, clusters: Collection[str]) -> set[str]:
        """Returns which organizations were configured at clusters in their last cycles."""
        found: set[str] = set()
        for cluster in clusters:
            here = standing.c.cluster == cluster
            newest = select(func.max(standing.c.cycle)).where(here).scalar_subquery()
            query = select(standing.c.organization).where(here, standing.c.cycle == newest)
            found.update(self._connection.execute(query).scalars())
        return found


class Pools(PoolsView):
    """Writes pools."""

    def change_stay(self, value: Stay) -> None:
        """Stores which pool the cluster is in, in place of what was stored."""
        self._replace(stay, [values_of(value)])

    def end_stay(self) -> None:
        """Stores that the cluster is in no pool; what it found in its stay remains."""
        for table in (stay, earlier_ledger):
            self._clear(table)

    def save_balances(self, pool: str, found: ClusterBalances) -> None:
        """Stores what the cluster has found in its stay, in place of what it had before."""
        self._clear(balance, balance.c.pool == pool, balance.c.since == found.since)
        self._insert(
            balance,
            [
                {
                    "pool": pool,
                    "since": found.since,
                    "organization": organization,
                    "t": found.t,
                    "weight": found.weight,
                    "all_parts": found.all_parts,
                    **values_of(path),
                }
                for organization, path in found.balances.items()
            ],
        )
