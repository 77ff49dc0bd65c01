"""Ranking rules: from a situation to the order in which organizations are served."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from shapleyprio.fairness.situation import Situation
from shapleyprio.fairness.trajectory import NOTHING, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The order in which organizations are served, and why.

    Attributes:
        rule: name of the rule that found it; a rule that fell back to another names that one.
        trajectories: organization -> its score, now and later; the higher, the sooner its next
            job starts. In the order of the configuration, which decides ties: the one listed
            first is served first.
        contributions: organization -> the contribution that its score counts, in part-seconds.
        reasons: organization -> why it has its score, a few words such as ``balance -5``.
        additive: organization -> what the clusters of a pool add, without what others add here, at
            the moment and later; empty for a rule by which each cluster ranks for itself.
        estimated_at: second for which the contributions were estimated; None if they are exact.
        unions: number of each organization's union, in the order of the configuration: the union
            with the highest sum of its members' scores is served first; None if all stand alone.
    """

    rule: str
    trajectories: Mapping[str, Trajectory]
    contributions: Mapping[str, int]
    reasons: Mapping[str, str]
    additive: Mapping[str, Trajectory] = field(default_factory=dict)
    estimated_at: int | None = None
    unions: tuple[int, ...] | None = None

    @property
    def scores(self) -> Mapping[str, int]:
        """Organization -> its score now."""
        return {name: path.after(0) for name, path in self.trajectories.items()}

    @property
    def order(self) -> list[str]:
        """Organizations from the first to be served to the last."""
        return self._order_after(0, self.trajectories, self._paths_of_unions())

    def seconds_until_reorder(self, among: Collection[str], within: int) -> int | None:
        """Returns after how many seconds the order changes, if nothing starts or ends meanwhile.

        Args:
            among: only the order of these organizations counts.
            within: only changes in fewer seconds count.

        >>> ranking = Ranking(
        ...     rule="directcontr",
        ...     trajectories={"alpha": Trajectory(0, 1, 0), "beta": Trajectory(5, -1, 0)},
        ...     contributions={},
        ...     reasons={},
        ... )
        >>> ranking.seconds_until_reorder({"alpha", "beta"}, within=30)
        3
        """
        unions = self._paths_of_unions()
        now = self._order_after(0, among, unions)
        later = (at for at in range(1, within) if self._order_after(at, among, unions) != now)
        return next(later, None)

    def _order_after(
        self, seconds: int, among: Collection[str], unions: Mapping[int, Trajectory]
    ) -> list[str]:
        paths = self.trajectories.items()
        order = by_score({name: path.after(seconds) for name, path in paths if name in among})
        if self.unions is None:
            return order
        scores = {union: path.after(seconds) for union, path in unions.items()}
        of = dict(zip(self.trajectories, self.unions, strict=True))
        return sorted(order, key=lambda name: (-scores[of[name]], of[name]))

    def _paths_of_unions(self) -> dict[int, Trajectory]:
        found: dict[int, Trajectory] = {}
        for union, path in zip(self.unions or (), self.trajectories.values(), strict=False):
            found[union] = found.get(union, NOTHING) + path
        return found


class RankingRule(Protocol):
    """Ranks organizations; it remembers nothing from one ranking to the next."""

    @property
    def name(self) -> str:
        """The value of ``fairness.rule`` that chooses it."""

    @property
    def criterion(self) -> str:
        """What it ranks by, in words for the configuration's reference."""

    @property
    def dynamics(self) -> str:
        """By what an organization's rank rises and falls, a sentence for its users."""

    @property
    def estimates(self) -> bool:
        """Whether it ranks by contributions that are estimated beside the cycles."""

    @property
    def by_balance(self) -> bool:
        """Whether its scores are contributions minus utilities, which are shown as delays."""

    def rank(self, situation: Situation) -> Ranking:
        """Ranks organizations. It must not wait: a cycle waits for it.

        Returns:
            a ranking with every organization in it.
        """


def by_score(scores: Mapping[str, int]) -> list[str]:
    """Returns organizations from the highest score to the lowest.

    Args:
        scores: in the order of the configuration, which decides ties.

    >>> by_score({"alpha": 5, "beta": -3, "gamma": 5})
    ['alpha', 'gamma', 'beta']
    """
    return sorted(scores, key=lambda name: -scores[name])
