"""What a ranking rule is: from a situation to the order in which organizations are served."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.worth import NOTHING, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """What organizations are worth to the others, as it was computed.

    Attributes:
        t: second for which it was computed, since the epoch.
        trajectories: organization -> its contribution φ in part-seconds, at t and later.
    """

    t: int
    trajectories: Mapping[str, Trajectory]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationState:
    """An organization at a moment.

    Attributes:
        name: its name.
        processors: how many it brings.
        given: φ̃, the worth of what its processors have executed for organizations, in
            part-seconds, at the moment and later.
        got: ψ, the worth of what its jobs have executed, in part-seconds, at the moment and later.
        parts: processor-seconds that its jobs have executed, of any age.
        running: processors that work for it.
        waiting: processors that those of its jobs ask for that lack nothing but their turn; 0 if
            none waits. In the daemon they are CPUs, whatever the weight.
        release: second since which the first of these jobs waits; None if none does.
    """

    name: str
    processors: int
    given: Trajectory = NOTHING
    got: Trajectory = NOTHING
    parts: int = 0
    running: int = 0
    waiting: int = 0
    release: int | None = None

    @property
    def contribution(self) -> int:
        """φ̃ at the moment, in part-seconds."""
        return self.given.after(0)

    @property
    def utility(self) -> int:
        """ψ at the moment, in part-seconds."""
        return self.got.after(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A consortium at a moment, after what ends and what is released there.

    Attributes:
        t: seconds since the epoch; in a replay from the window's begin.
        free: processors that are free.
        organizations: all of them, in the order of the configuration.
        estimated: their estimated contributions, no younger than t; None if there are none that
            can be relied on, and for rules that do not ask for any.
        elsewhere: organization -> what the pool adds to what its rule calls additive, at t and
            later; None for a cluster in no pool.
    """

    t: int
    free: int
    organizations: tuple[OrganizationState, ...]
    estimated: Contributions | None = None
    elsewhere: Mapping[str, Trajectory] | None = None

    @property
    def waiting(self) -> tuple[OrganizationState, ...]:
        """The organizations of which a job waits, in the order of the configuration."""
        return tuple(item for item in self.organizations if item.waiting > 0)

    def counted_by(self, ledger: Ledger) -> Situation:
        """Returns the same with what a ledger has of the organizations.

        Args:
            ledger: see `Ledger.pairs` for what t may be.
        """
        names = [item.name for item in self.organizations]
        paths, executed = ledger.trajectories(self.t, names), ledger.executed(self.t, names)
        states = []
        for item in self.organizations:
            (given, got), (parts, running) = paths[item.name], executed[item.name]
            states.append(replace(item, given=given, got=got, parts=parts, running=running))
        return replace(self, organizations=tuple(states))

    def with_pool(self, own: Mapping[str, Trajectory]) -> dict[str, Trajectory]:
        """Returns what is additive in the whole pool, from what it is here alone."""
        others = self.elsewhere or {}
        return {name: path + others.get(name, NOTHING) for name, path in own.items()}


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
