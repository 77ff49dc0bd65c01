"""DirectContr: who gave more than it got comes first (SPAA 2013, Fig. 9)."""

from __future__ import annotations

from collections.abc import Sequence

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.rule import Ranking, Trajectory


class DirectContr:
    """Ranks by the balance φ̃ − ψ in part-seconds.

    The contribution φ̃ is the worth of the parts executed on an organization's processors, the
    utility ψ that of the parts of its jobs. A score's rate is completed parts that gain worth,
    those on its processors less those of its jobs; its acceleration is processors at work, its
    own less those its jobs are on, with a horizon less those whose parts reach it.
    """

    name = "directcontr"
    criterion = "contribution minus utility"
    dynamics = (
        "An organization's rank rises as its nodes work for others, and falls as its jobs run."
    )

    def rank(self, ledger: Ledger, t: int, organizations: Sequence[str]) -> Ranking:
        """Ranks organizations at time t; see `Ledger.pairs` for what t may be."""
        balance, rate, acceleration = (dict.fromkeys(organizations, 0) for _ in range(3))
        for organization, owner, *changes in ledger.pairs(t):
            for sums, change in zip((balance, rate, acceleration), changes, strict=True):
                if owner in sums:
                    sums[owner] += change
                if organization in sums:
                    sums[organization] -= change
        return Ranking(
            rule=self.name,
            trajectories={
                name: Trajectory(balance[name], rate[name], acceleration[name])
                for name in organizations
            },
            reasons={name: f"balance {balance[name]}" for name in organizations},
        )
