"""What organizations bring, as cycles observe it: the processors on which work can be done."""

from __future__ import annotations

from collections.abc import Collection

from shapleyprio.service.report import Observation
from shapleyprio.store import Transaction


def note_capacities(
    transaction: Transaction, observation: Observation, organizations: Collection[str], opened: int
) -> None:
    """Stores how many processors each organization brings, where that has changed.

    Nobody knows since when a node is closed that was so at the first cycle: until then all nodes
    count as if they had been there since the opening.

    Args:
        transaction: of the store.
        observation: the cluster as it is.
        organizations: their names.
        opened: second at which the ledger was opened.
    """
    if not transaction.capacities():
        owned = observation.owned_processors()
        transaction.observe_capacities({name: owned.get(name, 0) for name in organizations}, opened)
    usable = observation.usable_processors()
    transaction.observe_capacities(
        {name: usable.get(name, 0) for name in organizations}, observation.t
    )
