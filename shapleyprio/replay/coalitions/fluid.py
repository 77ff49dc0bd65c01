"""The fluid approximation: what coalitions would be worth if work flowed like water.

Per organization and bin of time, demand is the processors that its jobs would hold if nothing
ever waited. A coalition puts its members' demand together: as many processors work as it has or
as are asked for, and what does not fit flows into the next bin. That costs microseconds for a
coalition and is close to its value, so sampling has only to find the small rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.coalitions.game import Bools, Game, Ints
from shapleyprio.replay.native import native

Floats = NDArray[np.float64]

BINS = 200


class Fluid(NamedTuple):
    """Demand and processors by bin of time.

    Attributes:
        demand: float64[k, bins], processors that each organization's jobs would hold.
        owned: float64[k, bins], those that it owns, in the mean over the bin.
        worth: float64[bins, 3], what one processor at work for the bin adds to a coalition's value
            in part-seconds, to its parts that gain worth, and to its processors at work at the end.
    """

    demand: Floats
    owned: Floats
    worth: Floats

    def values(self, coalitions: Bools) -> Floats:
        """Returns about what `first_come.values_of` does: float64[c, 3] for bool[c, k] members."""
        found = np.zeros((len(coalitions), 3))
        work = np.empty((2, self.demand.shape[1]))
        _flow(self, coalitions, work, found)
        return found

    def all_values(self) -> Floats:
        """Returns `values` of every coalition, float64[2^k, 3] by bit mask, and much faster."""
        k, bins = self.demand.shape
        found = np.zeros((2**k, 3))
        _flow_all(self, np.zeros((k + 1, 2, bins)), found)
        return found

    def contributions(self, orderings: Ints) -> Floats:
        """Returns what organizations add to it when they join in these orderings, in the mean.

        Args:
            orderings: int64[o, k], each with every organization once.

        Returns:
            float64[k, 3], the Shapley values if these are all orderings.
        """
        found = np.zeros((self.demand.shape[0], 3))
        work = np.empty((2, self.demand.shape[1]))
        _join(self, orderings, work, found)
        mean: Floats = found / len(orderings)
        return mean


def fluid_of(game: Game, bins: int = BINS) -> Fluid:
    """Makes the fluid approximation of a game."""
    edges = np.linspace(float(game.since[0]), float(game.until), bins + 1)
    width = edges[1] - edges[0]
    demand, owned = np.zeros((2, game.organizations, bins))
    for u in range(game.organizations):
        ours = game.organization == u
        demand[u] = _mean_level(
            edges,
            np.concatenate((game.release[ours], game.release[ours] + game.processing_time[ours])),
            np.concatenate((game.processors[ours], -game.processors[ours])),
        )
        owned[u] = _mean_level(edges, game.since, np.diff(game.owned[:, u], prepend=0))
    age = game.until - (edges[1:] + edges[:-1]) / 2
    at_work = np.zeros(bins)
    at_work[-1] = 1.0
    gaining = np.full(bins, width)
    if game.horizon is not None:
        gaining[age > game.horizon] = 0.0
        age = np.minimum(age, game.horizon)
    return Fluid(demand, owned, np.column_stack((age * width, gaining, at_work)))


def _mean_level(edges: Floats, time: NDArray[np.int64], change: NDArray[np.int64]) -> Floats:
    """Returns the mean over each bin of a level that changes by so much at these times."""
    width = edges[1] - edges[0]
    if width == 0:
        return np.zeros(len(edges) - 1)
    order = np.argsort(time, kind="stable")
    level = np.concatenate(([0], np.cumsum(change[order])))
    weighted = np.concatenate(([0.0], np.cumsum((change[order] * time[order]).astype(float))))
    passed = np.searchsorted(time[order], edges, side="right")
    mean: Floats = np.diff(level[passed] * edges - weighted[passed]) / width
    return mean


@native("fluid_flow")
def _flow(fluid: Fluid, coalitions: Bools, work: Floats, values: Floats) -> None:
    """Adds what flows in each coalition to its row of values; work is room: float64[2, bins]."""


@native("fluid_flow_all")
def _flow_all(fluid: Fluid, work: Floats, values: Floats) -> None:
    """Does so in every coalition; work holds zeros: float64[k + 1, 2, bins]."""


@native("fluid_join")
def _join(fluid: Fluid, orderings: Ints, work: Floats, gains: Floats) -> None:
    """Adds what flows more when each organization joins; work is room: float64[2, bins]."""
