"""The Shapley value itself: who is worth more to the others than it got comes first."""

from __future__ import annotations

from shapleyprio.fairness.directcontr import DirectContr, by_balance
from shapleyprio.fairness.rule import Ranking
from shapleyprio.fairness.situation import Situation


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
