"""Shapley values from the values of all coalitions: exact, or rounded and fast."""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import NDArray

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
