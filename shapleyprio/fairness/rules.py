"""The ranking rules there are, for the daemon and the replay alike."""

from __future__ import annotations

from collections.abc import Mapping

from shapleyprio.fairness.rule import Ranking, RankingRule, Situation
from shapleyprio.fairness.worth import Trajectory


class DirectContr:
    """Ranks by the balance φ̃ − ψ in part-seconds.

    The contribution φ̃ is the worth of the parts executed on an organization's processors, the
    utility ψ that of the parts of its jobs.
    """

    name = "directcontr"
    criterion = "contribution minus utility"
    dynamics = (
        "An organization's rank rises as its nodes work for others, and falls as its jobs run."
    )
    estimates = False
    by_balance = True

    def rank(self, situation: Situation) -> Ranking:
        """Ranks organizations by what was executed."""
        given = {item.name: item.given for item in situation.organizations}
        return by_balance(self.name, given, situation)


def by_balance(
    rule: str,
    given: Mapping[str, Trajectory],
    situation: Situation,
    *,
    estimated_at: int | None = None,
) -> Ranking:
    """Ranks by contribution minus utility, which is additive: that of a pool is the sum.

    Args:
        rule: that ranks.
        given: organization -> its contribution, in part-seconds.
        situation: with the utilities, and what the pool adds.
        estimated_at: second for which the contributions were estimated; None if they are exact.
    """
    own = {item.name: given[item.name] - item.got for item in situation.organizations}
    balances = situation.with_pool(own)
    where = "" if situation.elsewhere is None else " in the pool"
    return Ranking(
        rule=rule,
        trajectories=balances,
        contributions={name: given[name].after(0) for name in own},
        reasons={name: f"balance {path.after(0)}{where}" for name, path in balances.items()},
        additive=own,
        estimated_at=estimated_at,
    )


class ByShapley:
    """Ranks by φ − ψ in part-seconds, with φ the organization's Shapley value (SPAA 2013, Eq. 1).

    The contribution φ is estimated beside the cycles and follows its polynomial from then on; the
    utility ψ is the ledger's, exact at any time. Without an estimate it ranks as DirectContr.
    """

    name = "shapley"
    criterion = "Shapley value minus utility"
    dynamics = (
        "An organization's rank rises as others gain by its nodes, and falls as its jobs run."
    )
    estimates = True
    by_balance = True

    def rank(self, situation: Situation) -> Ranking:
        """Ranks organizations by what was estimated of them all."""
        estimated = situation.estimated
        names = [item.name for item in situation.organizations]
        if estimated is None or not estimated.trajectories.keys() >= set(names):
            return DirectContr().rank(situation)
        later = situation.t - estimated.t
        given = {name: estimated.trajectories[name].later(later) for name in names}
        return by_balance(self.name, given, situation, estimated_at=estimated.t)


DEFAULT_RULE = ByShapley.name

_RULES: tuple[RankingRule, ...] = (DirectContr(), ByShapley())

RULES: dict[str, RankingRule] = {rule.name: rule for rule in _RULES}
"""The value of ``fairness.rule`` that chooses it -> the rule."""
