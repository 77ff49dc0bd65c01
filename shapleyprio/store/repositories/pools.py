"""Pools: a cluster's stay in one, and what all clusters of one have found."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from operator import itemgetter

from sqlalchemy import func, select

from shapleyprio.fairness.pool import ClusterBalances, Stay
from shapleyprio.fairness.trajectory import Trajectory
from shapleyprio.store.scope import Scope, values_of
from shapleyprio.store.tables import balance, earlier_ledger, standing, stay, watermark

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
