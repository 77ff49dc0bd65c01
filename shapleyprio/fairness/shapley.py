"""Shapley values by the potential of Hart and Mas-Colell (Econometrica 1989), exactly.

P(∅) = 0 and P(C) = (v(C) + Σ_{u∈C} P(C−u)) / |C|; then φ_u(C) = P(C) − P(C−u) is the Shapley value
of u in C (SPAA 2013, Eqs. 1 and 2), for every u in every C, in O(k·2^k) instead of O(k·3^k).

A coalition is a bit mask: organization u is in C if bit u of C is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction


def members(coalition: int) -> Iterator[int]:
    """Lists the organizations in a coalition, in order.

    >>> list(members(0b1101))
    [0, 2, 3]
    """
    return (u for u in range(coalition.bit_length()) if coalition >> u & 1)


def potential(values: Sequence[int | Fraction]) -> tuple[Fraction, ...]:
    """Returns the potential of every coalition.

    Args:
        values: v of every coalition, by bit mask; 2^k of them, and values[0] == 0.

    Raises:
        ValueError: the number of values is no power of two, or the empty coalition has one.
    """
    if not values or len(values) & (len(values) - 1):
        raise ValueError(f"{len(values)} values; k organizations have 2^k coalitions")
    if values[0] != 0:
        raise ValueError(f"the empty coalition has value {values[0]}; it must be 0")
    potentials = [Fraction(0)]
    for coalition in range(1, len(values)):
        smaller = [potentials[coalition ^ (1 << u)] for u in members(coalition)]
        potentials.append((values[coalition] + sum(smaller, Fraction(0))) / len(smaller))
    return tuple(potentials)


def shapley(values: Sequence[int | Fraction]) -> tuple[Fraction, ...]:
    """Returns the Shapley value of every organization in the coalition of all.

    Args:
        values: v of every coalition, by bit mask; 2^k of them, and values[0] == 0.

    Raises:
        ValueError: as for `potential`.

    >>> print(*shapley([0, 10, 20, 40]))
    15 25
    """
    potentials = potential(values)
    everybody = len(values) - 1
    return tuple(
        potentials[everybody] - potentials[everybody ^ (1 << u)] for u in members(everybody)
    )
