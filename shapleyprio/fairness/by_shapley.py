"""The Shapley value itself: who is worth more to the others than it got comes first."""

from __future__ import annotations

from collections.abc import Sequence

from shapleyprio.fairness.directcontr import DirectContr
from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.rule import Contributions, Ranking


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

    def rank(
        self,
        ledger: Ledger,
        t: int,
        organizations: Sequence[str],
        estimated: Contributions | None,
    ) -> Ranking:
        """Ranks organizations at time t; see `Ledger.pairs` for what t may be."""
        if estimated is None or any(name not in estimated.trajectories for name in organizations):
            return DirectContr().rank(ledger, t, organizations)
        given = {
            name: estimated.trajectories[name].later(t - estimated.t) for name in organizations
        }
        paths = ledger.trajectories(t, organizations)
        balance = {name: given[name] - got for name, (_, got) in paths.items()}
        return Ranking(
            rule=self.name,
            trajectories=balance,
            contributions={name: path.after(0) for name, path in given.items()},
            reasons={name: f"balance {path.after(0)}" for name, path in balance.items()},
            estimated_at=estimated.t,
        )
