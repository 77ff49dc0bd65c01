"""Ranks a cluster's organizations, in its pool if it is in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import structlog

from shapleyprio.common.wording import duration
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.pool import ClusterBalances, PartState, PoolPart, elsewhere, parts_of
from shapleyprio.fairness.rule import Ranking, RankingRule
from shapleyprio.fairness.situation import OrganizationState, Situation
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.fairness.trajectory import NOTHING
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
        self, rule: RankingRule, situation: Situation, opened: OpenLedger
    ) -> tuple[Ranking, Sequence[PoolPart]]:
        """Returns a rule's ranking, and what the other clusters of the pool add to it.

        Args:
            rule: that ranks.
            situation: of the cluster alone.
            opened: its ledger.

        Raises:
            StoreError: the pool cannot be read, or be written to.
        """
        stay, earlier = opened.stay, opened.ledger.earlier
        if stay is None or earlier is None:
            return rule.rank(situation), ()
        everyone = _with_departed(situation, opened.ledger)
        before = rule.rank(everyone.counted_by(earlier)).additive
        weight = opened.watermark.weight
        with self._store.reading() as view:
            found = view.pools.pool_balances(stay.pool)
        parts = parts_of(found, stay, cluster=self._store.cluster, t=situation.t, weight=weight)
        names = [item.name for item in situation.organizations]
        ranking = rule.rank(replace(situation, elsewhere=elsewhere(parts, before, names)))
        own = {**rule.rank(everyone.counted_by(opened.ledger)).additive, **ranking.additive}
        ours = ClusterBalances(
            cluster=self._store.cluster,
            since=stay.since,
            t=situation.t,
            weight=weight,
            all_parts=opened.ledger.completed(situation.t) - earlier.completed(situation.t),
            balances={name: path - before.get(name, NOTHING) for name, path in own.items()},
        )
        self._store.transact(lambda transaction: transaction.pools.save_balances(stay.pool, ours))
        self._log_stale(parts, stay.stale_after)
        return ranking, parts

    def _log_stale(self, parts: Sequence[PoolPart], stale_after: int) -> None:
        """Logs the stale clusters if they are others than before."""
        stale = frozenset(part.cluster for part in parts if part.state is PartState.STALE)
        for cluster in sorted(stale - self._stale):
            log.warning(
                "the balances of a cluster in the pool are stale; they count as they stood",
                of=cluster,
                longer_than=duration(stale_after),
            )
        for cluster in sorted(self._stale - stale):
            log.info("the balances of a cluster in the pool are no longer stale", of=cluster)
        self._stale = stale


def _with_departed(situation: Situation, ledger: Ledger) -> Situation:
    """Returns a situation with the organizations, too, that the configuration no longer has.

    At other clusters they may still be members, and what they gave and got here counts there. No
    estimate has them, so there is none.

    Args:
        situation: of the organizations of the configuration.
        ledger: of the cluster.
    """
    configured = {item.name for item in situation.organizations}
    known = {name for pair in ledger.entries for name in pair}
    departed = (
        OrganizationState(name=name, processors=0) for name in sorted(known - configured - {NOBODY})
    )
    return replace(situation, organizations=(*situation.organizations, *departed), estimated=None)
