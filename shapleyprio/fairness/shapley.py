"""Shapley values of a game, and Owen values where organizations stand together in unions, exactly.

Shapley values come from the potential of Hart and Mas-Colell (Econometrica 1989): P(∅) = 0 and
P(C) = (v(C) + Σ_{u∈C} P(C−u)) / |C|; then φ_u(C) = P(C) − P(C−u) is the Shapley value of u in C
(SPAA 2013, Eqs. 1 and 2), for every u in every C, in O(k·2^k) instead of O(k·3^k).

For Owen values (Owen 1977) first the unions play, each as one, then the members of a union share
what it gets. So the Owen value of u is what it adds on average if all orderings in which no union
is interrupted are equally likely. It needs the values of those coalitions alone that are some whole
unions and a part of one more. With unions of one member each, or with one union, it is the Shapley
value.

A coalition is a bit mask: organization u is in C if bit u of C is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import factorial


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


def owen(values: Sequence[int], unions: Sequence[int] | None) -> tuple[Fraction, ...]:
    """Returns the Owen value of every organization.

    Args:
        values: v of every coalition, by bit mask, as `shapley` takes them.
        unions: of each organization the number of its union; None if all stand alone.

    >>> print(*owen([0, 0, 0, 8, 0, 8, 0, 8], unions=[0, 0, 1]))
    6 2 0
    """
    if unions is None:
        return shapley(values)
    numerators, denominator = owen_numerators(values, unions), owen_denominator(unions)
    return tuple(Fraction(numerator, denominator) for numerator in numerators)


def owen_denominator(unions: Sequence[int]) -> int:
    """Returns a number by which every Owen value of a game in whole numbers is whole.

    >>> owen_denominator([0, 0, 0, 1]), owen_denominator([0, 1, 2, 3])
    (12, 24)
    """
    return factorial(len(set(unions))) * factorial(max(map(unions.count, set(unions))))


def owen_numerators(values: Sequence[int] | Mapping[int, int], unions: Sequence[int]) -> list[int]:
    """Returns the Owen values times `owen_denominator`, in whole numbers.

    Args:
        values: v of the coalitions that it needs, by bit mask.
        unions: as for `owen`.
    """
    numerators = [0] * len(unions)
    masks = masks_of(unions)
    largest = factorial(max(mask.bit_count() for mask in masks))
    for own in masks:
        others, d = [mask for mask in masks if mask != own], own.bit_count()
        added = dict.fromkeys(parts_of(own), 0)
        for whole in range(2 ** len(others)):
            base, q = joined(others, whole), whole.bit_count()
            between = factorial(q) * factorial(len(others) - q)
            for part in added:
                added[part] += between * values[base | part]
        within = [largest // factorial(d) * factorial(s) * factorial(d - s - 1) for s in range(d)]
        for u in members(own):
            numerators[u] = sum(
                within[part.bit_count()] * (added[part | 1 << u] - value)
                for part, value in added.items()
                if not part >> u & 1
            )
    return numerators


def parts_of(mask: int) -> Iterator[int]:
    """Lists the coalitions within one, from none to itself.

    >>> list(parts_of(0b101))
    [0, 1, 4, 5]
    """
    part = 0
    while True:
        yield part
        if part == mask:
            return
        part = (part - mask) & mask


def unions_of(names: Sequence[str], parents: Mapping[str, str]) -> tuple[int, ...] | None:
    """Returns the number of each organization's union, in the order in which these are listed.

    Args:
        names: of the organizations.
        parents: organization -> its parent, of those that have one.

    Returns:
        None if all stand alone or all together, where Owen values are Shapley values.

    >>> unions_of(["law", "physics", "science"], {"physics": "science"})
    (0, 1, 1)
    """
    heads = [parents.get(name, name) for name in names]
    listed = list(dict.fromkeys(heads))
    return tuple(map(listed.index, heads)) if 1 < len(listed) < len(names) else None


def joined(masks: Sequence[int], chosen: int) -> int:
    """Returns all members of some unions, as bits.

    >>> joined([0b0011, 0b0100, 0b1000], chosen=0b101)
    11
    """
    return sum(mask for place, mask in enumerate(masks) if chosen >> place & 1)


def masks_of(unions: Sequence[int]) -> list[int]:
    """Returns each union as bits of its members, in the order in which they are listed.

    >>> masks_of([0, 1, 0])
    [5, 2]
    """
    return [
        sum(1 << u for u, of in enumerate(unions) if of == union) for union in dict.fromkeys(unions)
    ]
