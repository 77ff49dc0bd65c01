"""DirectContr: who gave more than it got comes first (SPAA 2013, Fig. 9)."""

from __future__ import annotations

from collections.abc import Sequence

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.fairness.rule import Contributions, Ranking


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

    def rank(
        self,
        ledger: Ledger,
        t: int,
        organizations: Sequence[str],
        estimated: Contributions | None = None,  # noqa: ARG002  # it counts what was executed
    ) -> Ranking:
        """Ranks organizations at time t; see `Ledger.pairs` for what t may be."""
        paths = ledger.trajectories(t, organizations)
        balance = {name: given - got for name, (given, got) in paths.items()}
        return Ranking(
            rule=self.name,
            trajectories=balance,
            contributions={name: given.after(0) for name, (given, _) in paths.items()},
            reasons={name: f"balance {path.after(0)}" for name, path in balance.items()},
        )
