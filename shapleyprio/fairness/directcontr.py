"""DirectContr: who gave more than it got comes first (SPAA 2013, Fig. 9)."""

from __future__ import annotations

from collections.abc import Mapping

from shapleyprio.fairness.rule import Ranking
from shapleyprio.fairness.situation import Situation
from shapleyprio.fairness.trajectory import Trajectory


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
