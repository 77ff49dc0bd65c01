"""Owen values where organizations stand together: from all coalitions that matter, or from some.

For the members of a union U any other union counts as one, so they share as in a game of these and
of themselves. Its coalitions are all that is needed, and so many are few enough for the fluid
approximation where all subsets of the organizations are not. Of real values, where there are too
many, random orderings that keep unions together are drawn, each with its reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from shapleyprio.fairness.owen import masks_of
from shapleyprio.replay.coalitions.exact import all_coalitions, rounded_shapley_values
from shapleyprio.replay.coalitions.fluid import Fluid
from shapleyprio.replay.coalitions.game import Bools, Ints
from shapleyprio.replay.coalitions.sampling import Floats


def needed(organizations: int, unions: Sequence[int] | None) -> int:
    """Returns of how many coalitions exact contributions need the values, those of some twice.

    >>> needed(10, None), needed(60, [u % 8 for u in range(60)])
    (1024, 196608)
    """
    if unions is None:
        return 1 << organizations
    sizes = [mask.bit_count() for mask in masks_of(unions)]
    return sum(1 << len(sizes) - 1 + size for size in sizes)


def needed_coalitions(unions: Sequence[int]) -> Bools:
    """Returns these coalitions, each once: bool[c, k]."""
    players = (_players(unions, one) for one in range(max(unions) + 1))
    rows = [all_coalitions(len(some)) @ some for some in players]
    found: Bools = np.unique(np.concatenate(rows), axis=0)
    return found


def rounded_owen_values(fluid: Fluid, unions: Sequence[int]) -> Floats:
    """Returns the Owen values of the fluid approximation: float64[k, 3]."""
    found = np.zeros((len(unions), 3))
    for one in range(max(unions) + 1):
        members = np.flatnonzero(np.array(unions) == one)
        players = _players(unions, one).astype(np.float64)
        merged = Fluid(players @ fluid.demand, players @ fluid.owned, fluid.worth)
        others = len(players) - len(members)
        values = merged.all_values().reshape(2**others, 2 ** len(members), 3)
        size = all_coalitions(others).sum(axis=1)
        chance = [1 / (others + 1) / comb(others, q) for q in range(others + 1)]
        added = np.tensordot(np.array(chance)[size], values - values[:, :1], axes=1)
        found[members] = rounded_shapley_values(added)
    return found


def _players(unions: Sequence[int], one: int) -> Bools:
    """Returns whom the members of a union play with: themselves, then the others: bool[p, k]."""
    of = np.array(unions)
    alone = np.eye(len(of), dtype=np.bool_)[of == one]
    others = np.arange(of.max() + 1)[:, None] == of
    return np.concatenate((alone, np.delete(others, one, axis=0)))


def random_orderings(unions: Sequence[int], count: int, random: np.random.Generator) -> Ints:
    """Draws orderings in which unions stay together, each as likely as any other: int64[o, k]."""
    of_union = random.random((count, max(unions) + 1))[:, unions]
    return np.lexsort((random.random((count, len(unions))), of_union), axis=1)


@dataclass(frozen=True, slots=True)
class OrderingSample:
    """Orderings that were drawn.

    Attributes:
        coalitions: bool[c, k], those of whom joined first, without nobody and all.
        orderings: int64[o, k]; one and its reverse follow each other.
        row: int64[o, k − 1], where the coalitions of each ordering stand.
        exact: never, since they are drawn.
    """

    coalitions: Bools
    orderings: Ints
    row: Ints
    exact: bool = False

    def solved(self, values: Floats, total: Floats) -> tuple[Floats, Floats]:
        """Returns what `Sample.solved` does, of Owen values."""
        count, k = self.orderings.shape
        joined = np.zeros((count, k + 1, len(total)))
        joined[:, 1:-1], joined[:, -1] = values[self.row], total
        added = np.zeros((count, k, len(total)))
        np.put_along_axis(added, self.orderings[:, :, None], np.diff(joined, axis=1), axis=1)
        pairs = added.reshape(count // 2, 2, k, len(total)).mean(axis=1)
        return pairs.mean(axis=0), pairs[:, :, 0].std(axis=0, ddof=1) / np.sqrt(len(pairs))


class OrderingDraws:
    """A stream of orderings that keep unions together; the same for the same seed.

    Args:
        unions: of each organization the number of its union.
        seed: of the draws.
    """

    def __init__(self, unions: Sequence[int], seed: int) -> None:
        self._unions = unions
        self._random = np.random.default_rng((seed % 2**64, len(unions)))
        self._pairs: list[Ints] = []

    def sample(self, budget: int) -> OrderingSample:
        """Draws so many that there are about `budget` coalitions, and two pairs at least."""
        k = len(self._unions)
        pairs = max(budget // (2 * (k - 1)), 2)
        while len(self._pairs) < pairs:
            one = random_orderings(self._unions, 1, self._random)
            self._pairs.append(np.concatenate((one, one[:, ::-1])))
        orderings = np.concatenate(self._pairs[:pairs])
        place = np.argsort(orderings, axis=1)
        joined = place[:, None, :] < np.arange(1, k)[:, None]
        coalitions, row = np.unique(joined.reshape(-1, k), axis=0, return_inverse=True)
        return OrderingSample(coalitions, orderings, row.reshape(2 * pairs, k - 1))
