"""Ranks a cluster's organizations by their balances at all clusters of its pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import structlog

from shapleyprio.common.wording import duration
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.fairness.pool import ClusterBalances, PartState, PoolPart, parts_of, pooled
from shapleyprio.fairness.rule import Ranking
from shapleyprio.store import ClusterStore

log = structlog.get_logger(__name__)


class Pooling:
    """Adds what the other clusters have found, and stores for them what this one has.

    Args:
        store: of the cluster; the other clusters use the same database.
    """

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._stale: frozenset[str] = frozenset()

    def rank(
        self, ranking: Ranking, opened: OpenLedger, t: int
    ) -> tuple[Ranking, Sequence[PoolPart]]:
        """Returns the ranking in the pool, and what the other clusters add to it.

        Args:
            ranking: by the cluster's own ledger; it stays as it is for a cluster in no pool.
            opened: that ledger.
            t: second at which it stands.

        Raises:
            StoreError: the pool cannot be read, or be written to.
        """
        if opened.stay is None:
            return ranking, ()
        earlier = opened.ledger.earlier_balances(t, ranking.trajectories)
        own = {name: path - earlier[name] for name, path in ranking.trajectories.items()}
        ours = ClusterBalances(
            cluster=self._store.cluster,
            since=opened.stay.since,
            t=t,
            weight=opened.watermark.weight,
            balances=own,
        )
        with self._store.reading() as view:
            found = view.pool_balances(opened.stay.pool)
        pool = opened.stay.pool
        self._store.transact(lambda transaction: transaction.save_balances(pool, ours))
        parts = parts_of(
            found, opened.stay, cluster=ours.cluster, t=t, weight=opened.watermark.weight
        )
        self._log_stale(parts, opened.stay.stale_after)
        return pooled(replace(ranking, trajectories=own), parts), parts

    def _log_stale(self, parts: Sequence[PoolPart], stale_after: int) -> None:
        """Logs of which clusters nothing new is known, when they are not those of before."""
        stale = frozenset(part.cluster for part in parts if part.state is PartState.STALE)
        for cluster in sorted(stale - self._stale):
            log.warning(
                "the balances of a cluster in the pool are stale; they count as they stood",
                of=cluster,
                longer_than=duration(stale_after),
            )
        for cluster in sorted(self._stale - stale):
            log.info("the balances of a cluster in the pool are stale no more", of=cluster)
        self._stale = stale
