"""Few coalitions with good weights: paired leverage sampling and its least squares.

Musco & Witter, "Provably Accurate Shapley Value Estimation via Leverage Score Sampling" (2024):
every size of coalition gets the same number of draws, a coalition is drawn together with its
complement, sizes with few coalitions are taken whole, and a weighted least-squares fit under
Σφ = v(N) gives the Shapley values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.coalitions.game import Bools

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
