"""Ranks organizations by the rule, in the cluster's pool if there is one, and gives them points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from shapleyprio.common.wording import duration, signed_duration
from shapleyprio.config import Config
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.estimation.live import LiveEstimates
from shapleyprio.daemon.pushing.push import Wanted
from shapleyprio.daemon.ranking.observation import Observation
from shapleyprio.daemon.ranking.observing import Observed
from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.pool import (
    ClusterBalances,
    PartState,
    PoolPart,
    Stay,
    elsewhere,
    parts_of,
)
from shapleyprio.fairness.rule import (
    Contributions,
    OrganizationState,
    Ranking,
    RankingRule,
    Situation,
)
from shapleyprio.fairness.scale import scale
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.fairness.worth import NOTHING, Trajectory
from shapleyprio.slurm.channels import Channel
from shapleyprio.slurm.layout import Layout, others_can_add
from shapleyprio.store import ClusterStore, StandingRow


def standing_rows(
    cycle: int,
    situation: Situation,
    ranking: Ranking,
    points: Mapping[str, int],
    observation: Observation,
    all_parts: int,
    parents: Mapping[str, str],
) -> list[StandingRow]:
    """Returns one row for each organization, in the order of the configuration.

    Args:
        cycle: its number.
        situation: what each organization gave and got.
        ranking: of the same organizations.
        points: organization -> priority points.
        observation: the cluster.
        all_parts: of all jobs, whoever's, completed by then, of any age.
        parents: organization -> its parent, of those that have one.
    """
    waiting, owned = observation.waiting_jobs(), observation.owned_processors()
    scores = ranking.scores
    return [
        StandingRow(
            cycle=cycle,
            organization=item.name,
            t=situation.t,
            contribution=ranking.contributions[item.name],
            utility=item.utility,
            score=scores[item.name],
            priority=points[item.name],
            pending=waiting.get(item.name, 0),
            running=observation.running.get(item.name, 0),
            processors=owned.get(item.name, 0),
            parts=item.got.rate,
            reason=ranking.reasons[item.name],
            all_parts=all_parts,
            parent=parents.get(item.name),
        )
        for item in situation.organizations
    ]


def explanations(rows: Iterable[StandingRow], ranking: Ranking) -> dict[str, str]:
    """Returns organization -> its rank and why it has it, in words for the record of writes.

    Args:
        rows: one for each organization.
        ranking: of the same organizations. Where its scores are not the balances, its own words
            say why.
    """
    order = ranking.order
    ranks = {name: rank for rank, name in enumerate(order, start=1)}
    return {
        row.organization: f"rank {ranks[row.organization]} of {len(order)}, {_why(row)}"
        for row in rows
    }


def _why(row: StandingRow) -> str:
    if row.score != row.balance:
        return row.reason
    return f"balance {signed_duration(row.balance_per_part or 0)}"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The organizations as a cycle ranks them.

    Attributes:
        rule: name of the rule that ranked them.
        estimated_at: second for which the contributions that it ranked by were estimated; None
            if they are the ledger's.
        trajectories: organization -> its score from t on.
        pool: what the other clusters of the pool add to the scores.
        standings: one row for each organization, in the order of the configuration.
        wanted: the points that they are to have.
        seconds_until_reorder: seconds until the order of organizations that wait changes, if
            nothing starts or ends; None if not before the next poll.
    """

    rule: str = ""
    estimated_at: int | None = None
    trajectories: Mapping[str, Trajectory] = field(default_factory=dict)
    pool: Sequence[PoolPart] = ()
    standings: Sequence[StandingRow] = ()
    wanted: Wanted = field(default_factory=lambda: Wanted(points={}, reasons={}))
    seconds_until_reorder: int | None = None


class Ranker:
    """Ranks organizations, cycle after cycle.

    Args:
        config: the organizations, and how far points are to count.
        store: of the ledger.
        rule: that ranks.
        channel: that carries the priorities.
        estimates: of contributions, for a rule that asks for them; None for none.
    """

    def __init__(
        self,
        config: Config,
        store: ClusterStore,
        rule: RankingRule,
        channel: Channel,
        estimates: LiveEstimates | None,
    ) -> None:
        self._config = config
        self._pooling = Pooling(store)
        self._rule = rule
        self._channel = channel
        self._estimates = estimates

    def rank(self, cycle: int, opened: OpenLedger, observed: Observed, layout: Layout) -> Ranked:
        """Ranks the organizations.

        Args:
            cycle: its number.
            opened: the ledger, as this cycle has accounted.
            observed: the cluster, as it has observed.
            layout: of the cluster, as Slurm has it.

        Raises:
            StoreError: the pool cannot be read, or be written to.
        """
        observation = observed.observation
        names = [organization.name for organization in self._config.organizations]
        situation = observation.situation(
            names,
            opened.ledger,
            observed.demand.places,
            self._contributions(observed, opened.stay),
        )
        ranking, pool = self._pooling.rank(self._rule, situation, opened)
        ranking = replace(ranking, unions=self._config.unions)
        points = self._points(ranking, layout)
        standings = standing_rows(
            cycle,
            situation,
            ranking,
            points,
            observation,
            opened.ledger.completed(observation.t),
            self._config.parents,
        )
        return Ranked(
            rule=ranking.rule,
            estimated_at=ranking.estimated_at,
            trajectories=ranking.trajectories,
            pool=pool,
            standings=standings,
            wanted=Wanted(points=points, reasons=explanations(standings, ranking)),
            seconds_until_reorder=ranking.seconds_until_reorder(
                {row.organization for row in standings if row.pending},
                within=self._config.service.poll_interval,
            ),
        )

    def _contributions(self, observed: Observed, stay: Stay | None) -> Contributions | None:
        if self._estimates is None or not self._rule.estimates:
            return None
        return self._estimates.contributions(
            self._config,
            lambda: observed.observation.counting_jobs(observed.demand.counting()),
            observed.observation.t,
            since=0 if stay is None else stay.since,
        )

    def _points(self, ranking: Ranking, layout: Layout) -> dict[str, int]:
        others = others_can_add(layout, self._channel.factor)
        order = ranking.order
        return scale(len(order), others, self._config.push.influence).points_of(order)
