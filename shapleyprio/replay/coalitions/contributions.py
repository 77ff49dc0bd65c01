"""Contributions from the values of coalitions: of all of them, or of some that are drawn.

Paired leverage sampling and its least squares (Musco & Witter, "Provably Accurate Shapley Value
Estimation via Leverage Score Sampling", 2024): every size of coalition gets the same number of
draws, a coalition is drawn together with its complement, sizes with few coalitions are taken whole,
and a weighted least-squares fit under Σφ = v(N) gives the Shapley values.

Owen values where organizations stand together: for the members of a union U any other union counts
as one, so they share as in a game of these and of themselves. Its coalitions are all that is
needed, and so many are few enough for the fluid approximation where all subsets of the
organizations are not. Of real values, where there are too many, random orderings that keep unions
together are drawn, each with its reverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.shapley import masks_of
from shapleyprio.replay.coalitions.fluid import Fluid
from shapleyprio.replay.coalitions.game import Bools, Ints


def all_coalitions(organizations: int) -> Bools:
    """Returns every coalition: bool[2^k, k], row C has bit u of C."""
    numbers = np.arange(2**organizations)[:, None]
    return ((numbers >> np.arange(organizations)) & 1).astype(np.bool_)


def shapley_numerators(values: Ints) -> list[int]:
    """Returns k!·φ of every organization: what it adds to coalitions, summed (SPAA 2013, Eq. 1).

    Args:
        values: int64[2^k], v of every coalition by bit mask; values[0] == 0.
    """
    k = len(values).bit_length() - 1
    coalitions = all_coalitions(k)
    size = coalitions.sum(axis=1)
    numerators = []
    for u in range(k):
        without = np.flatnonzero(~coalitions[:, u])
        gains = values[without | 1 << u].astype(object) - values[without]
        by_size = np.zeros(k, dtype=object)
        np.add.at(by_size, size[without], gains)
        numerators.append(
            sum(factorial(s) * factorial(k - s - 1) * int(by_size[s]) for s in range(k))
        )
    return numerators


def rounded_shapley_values(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns φ of every organization in n games at once, by Hart & Mas-Colell's potential.

    Args:
        values: float64[2^k, n], v of every coalition by bit mask; values[0] == 0.

    Returns:
        float64[k, n].
    """
    k = len(values).bit_length() - 1
    coalitions = all_coalitions(k)
    size = coalitions.sum(axis=1)
    potential = values.copy()
    for s in range(1, k + 1):
        larger = np.flatnonzero(size == s)
        for u in range(k):
            with_u = larger[coalitions[larger, u]]
            potential[with_u] += potential[with_u ^ (1 << u)]
        potential[larger] /= s
    found: NDArray[np.float64] = potential[-1] - potential[len(values) - 1 - (1 << np.arange(k))]
    return found


Floats = NDArray[np.float64]

GROUPS = 10
"""Parts of a sample from whose differences standard errors are estimated."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Coalitions that were drawn.

    Attributes:
        coalitions: bool[c, k]; a coalition and its complement follow each other. The empty
            coalition and that of all are not among them.
        weights: float64[c], of each in the least squares.
        complete: bool[c], whether all coalitions of its size were drawn.
        size: int64[c], members of the smaller one of the coalition and its complement.
    """

    coalitions: Bools
    weights: Floats
    complete: NDArray[np.bool_]
    size: NDArray[np.int64]

    @property
    def exact(self) -> bool:
        """Whether every coalition is there, so that the fit is the Shapley value itself."""
        return bool(self.complete.all())

    def solved(self, values: Floats, total: Floats) -> tuple[Floats, Floats]:
        """Returns the contributions in n games, float64[k, n], and standard errors in the first.

        Args:
            values: float64[c, n], v of each coalition in each game.
            total: float64[n], v of the coalition of all.
        """
        return fit(self, values, total), _jackknife(self, values[:, 0], total[0])

    def without(self, left_out: NDArray[np.bool_]) -> Sample:
        """Leaves coalitions out, none of a size that is complete; the others weigh more for it."""
        kept = ~left_out
        before = np.bincount(self.size)[self.size[kept]]
        after = np.bincount(self.size[kept])[self.size[kept]]
        return Sample(
            self.coalitions[kept],
            self.weights[kept] * before / after,
            self.complete[kept],
            self.size[kept],
        )


class Draws:
    """A stream of coalitions for each pair of sizes, s and k − s; the same for the same seed.

    A larger sample contains every smaller one, so values that were computed can be used again.

    Args:
        organizations: k, at least 2.
        seed: of the draws.
    """

    def __init__(self, organizations: int, seed: int) -> None:
        self._k = organizations
        self._sizes = range(1, organizations // 2 + 1)
        self._streams = {s: _stream(organizations, s, seed) for s in self._sizes}
        self._drawn: dict[int, list[Bools]] = {s: [] for s in self._sizes}

    def sample(self, budget: int) -> Sample:
        """Draws about `budget` coalitions, spread evenly over sizes; all if there are no more.

        At least one pair of each size is drawn.
        """
        pairs = self._allotted(max(budget // 2, len(self._sizes)))
        coalitions, weights, complete, size = [], [], [], []
        for s, count in pairs.items():
            drawn = self._drawn[s]
            while len(drawn) < count:
                drawn.append(next(self._streams[s]))
            whole = count == _pairs(self._k, s)
            # per coalition: kernel weight over the chance to be drawn
            weight = _pairs(self._k, s) / count / (comb(self._k, s) * s * (self._k - s))
            for members in drawn[:count]:
                coalitions += [members, ~members]
            weights += [weight] * (2 * count)
            complete += [whole] * (2 * count)
            size += [s] * (2 * count)
        return Sample(np.array(coalitions), np.array(weights), np.array(complete), np.array(size))

    def _allotted(self, pairs: int) -> dict[int, int]:
        """Maps sizes to numbers of pairs; what a small size cannot use goes to the others."""
        # a pair of the middle size is two coalitions of that size
        shares = {s: 1 if 2 * s == self._k else 2 for s in self._sizes}
        left, allotted = pairs, {}
        for s in sorted(self._sizes, key=lambda s: _pairs(self._k, s) / shares[s]):
            share = -(-left * shares[s] // sum(shares[t] for t in shares if t not in allotted))
            allotted[s] = min(max(share, 1), _pairs(self._k, s))
            left = max(left - allotted[s], 0)
        return {s: allotted[s] for s in self._sizes}


def fit(sample: Sample, values: Floats, total: Floats) -> Floats:
    """Fits the Shapley values of n games best: float64[k, n], their sums are `total`.

    Args:
        sample: coalitions and weights.
        values: float64[c, n], v of each coalition in each game.
        total: float64[n], v of the coalition of all.
    """
    members = sample.coalitions.astype(np.float64)
    k = members.shape[1]
    share = members.sum(axis=1) / k
    centered = members - share[:, None]  # the direction of Σφ is taken out, total gives it
    root = np.sqrt(sample.weights)
    rest = np.linalg.lstsq(
        centered * root[:, None], (values - share[:, None] * total) * root[:, None], rcond=None
    )[0]
    fitted: Floats = total / k + rest - rest.mean(axis=0)
    return fitted


def _jackknife(sample: Sample, values: Floats, total: float) -> Floats:
    """Estimates standard errors of a fit, from fits that leave out one group of pairs each.

    Pairs of sizes that were taken whole belong to every group: they bring no chance into it.
    """
    if sample.exact:
        return np.zeros(sample.coalitions.shape[1])
    pair = np.arange(len(values)) // 2  # those of one size stand together
    group = np.where(sample.complete, -1, pair % GROUPS)
    fits = np.array(
        [
            fit(sample.without(group == g), values[group != g, None], np.array([total]))[:, 0]
            for g in range(GROUPS)
        ]
    )
    spread: Floats = ((fits - fits.mean(axis=0)) ** 2).sum(axis=0)
    return np.sqrt((GROUPS - 1) / GROUPS * spread)


def _pairs(k: int, s: int) -> int:
    """Counts the pairs of a coalition of size s and its complement."""
    return comb(k, s) // 2 if 2 * s == k else comb(k, s)


def _stream(k: int, s: int, seed: int) -> Iterator[Bools]:
    """Yields different coalitions of size s, in random order; of complements only one."""
    random = np.random.default_rng((seed % 2**64, k, s))
    if _pairs(k, s) <= 5_000:
        every = [members for members in combinations(range(k), s) if 2 * s != k or members[0] == 0]
        for place in random.permutation(len(every)):
            yield _members(k, every[place])
        return
    seen: set[bytes] = set()
    while True:
        drawn = _members(k, random.permutation(k)[:s])
        if 2 * s == k and not drawn[0]:
            drawn = ~drawn
        if (key := drawn.tobytes()) not in seen:
            seen.add(key)
            yield drawn


def _members(k: int, chosen: object) -> Bools:
    members = np.zeros(k, dtype=np.bool_)
    members[np.asarray(chosen)] = True
    return members


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
