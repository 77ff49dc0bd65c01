"""Ranks a cluster's organizations by the rule, and gives them points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from shapleyprio.config import Config
from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.estimation.live import LiveEstimates
from shapleyprio.daemon.pushing.push import Wanted
from shapleyprio.daemon.ranking.observing import Observed
from shapleyprio.daemon.ranking.pooling import Pooling
from shapleyprio.daemon.ranking.standings import explanations, standing_rows
from shapleyprio.fairness.pool import PoolPart, Stay
from shapleyprio.fairness.rule import Ranking, RankingRule
from shapleyprio.fairness.scale import scale
from shapleyprio.fairness.situation import Contributions
from shapleyprio.fairness.trajectory import Trajectory
from shapleyprio.slurm.channels import Channel
from shapleyprio.slurm.layout import Layout
from shapleyprio.slurm.priority import others_can_add
from shapleyprio.store import ClusterStore, StandingRow


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
