"""Keys, by which Ref, Rand and rankings choose, and what they are made of."""

from __future__ import annotations

from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Notes(NamedTuple):
    """What coalitions did in one block of seconds: a list for each one, one list behind another.

    The value of a coalition at any second of the block follows from the moments of what counts:
    of all its jobs, less those of what is a horizon old.

    Attributes:
        entries: [., 4 or 5], first the moments when the block begins, then behind each change its
            second and the moments; a second that does not come closes a list.
        first: [c], where a coalition's list begins.
        block: [c], the begin of the block that its list is of.
        end: [1], behind the last list.
    """

    entries: Ints
    first: Ints
    block: Ints
    end: Ints


class BySecond(NamedTuple):
    """Keys that are rough, and what exact ones are added up from where they are asked for.

    Empty where rows hold all keys (see `native/by_second.h`).

    Attributes:
        used: [1], whether these are used; else rows hold the keys.
        asked: [1], values that the choices of a block took.
        members: [c], how many a coalition has.
        weights: [k + 1, k + 1], by the members of the coalition that chooses, and of the one
            whose value it is.
        potential: [c, points], P(c) of `lattice` where cells begin, and where the last one ends.
        made: [1], coalitions with smaller numbers have their potential for this block.
        cell_bits: [1], a cell has 2^cell_bits seconds.
        doubt: [1], keys between which rough ones differ by no more are compared exactly.
        rough: [k], rough keys.
        exact: [k], exact keys modulo 2^64.
    """

    used: Ints
    asked: Ints
    members: Ints
    weights: Ints
    potential: NDArray[np.float64]
    made: Ints
    cell_bits: Ints
    doubt: NDArray[np.float64]
    rough: NDArray[np.float64]
    exact: Ints


class Keys(NamedTuple):
    """Values over one block of seconds, by which organizations are chosen (see `native/choice.c`).

    Attributes:
        begin: [4], the block's first second; whether there are keys for all coalitions; else for
            how many of the first ones; whether somebody has chosen by keys.
        rows: [r, seconds], values modulo 2^64.
        high: [r, seconds], their second limbs; [r, 0] without.
        base, slope: [r], the value at the block's begin and its growth in a second, rounded.
        factor: [c], what a utility is multiplied with before it is added to a key.
        inverse, shrink: [c], what keys are multiplied with before they are compared: the inverse of
            their odd divisor (`lattice`), modulo 2^64 and rounded. Keys of two limbs go without.
        lattice: [1], whether rows belong to coalitions (else to organizations).
        notes: what the values are made of.
        by_second: what keys are made of instead, where few are asked for.
    """

    begin: Ints
    rows: Ints
    high: Ints
    base: NDArray[np.float64]
    slope: NDArray[np.float64]
    factor: Ints
    inverse: Ints
    shrink: NDArray[np.float64]
    lattice: Ints
    notes: Notes
    by_second: BySecond


class Block(NamedTuple):
    """How far keys reach.

    Attributes:
        seconds: of a block.
        wide: whether sums and keys have two limbs.
        cell_bits: there are rough keys every 2^cell_bits seconds.
        doubt: rough keys that differ by more are in the right order.
    """

    seconds: int
    wide: bool
    cell_bits: int = 0
    doubt: float = 0.0


def no_keys() -> Keys:
    """Makes empty keys for policies that need none."""
    return keys_of(rows=0, coalitions=1, block=Block(1, wide=False), lattice=False)


def keys_of(
    *, rows: int, coalitions: int, block: Block, lattice: bool, tracked: int = 0, lists: int = 0
) -> Keys:
    """Makes room for keys over blocks of seconds.

    Args:
        rows: how many there are.
        coalitions: that choose by keys, or make them.
        block: how far keys reach.
        lattice: whether rows belong to coalitions.
        tracked: the first so many of the coalitions make keys.
        lists: of so many of these there is room for the longest notes that there can be.
    """
    return Keys(
        begin=np.zeros(4, dtype=np.int64),
        rows=np.zeros((rows, block.seconds), dtype=np.int64),
        high=np.zeros((rows, block.seconds * block.wide), dtype=np.int64),
        base=np.zeros(rows),
        slope=np.zeros(rows),
        factor=np.ones(coalitions, dtype=np.int64),
        inverse=np.ones(coalitions, dtype=np.int64),
        shrink=np.ones(coalitions),
        lattice=np.array([lattice], dtype=np.int64),
        notes=notes_of(tracked, lists * list_room(block), block),
        by_second=by_second_of(0, block),
    )


def list_room(block: Block) -> int:
    """Returns how many entries the list of a coalition takes at most."""
    return block.seconds + 2


def notes_of(tracked: int, room: int, block: Block) -> Notes:
    """Makes room for so many entries; what is never written takes no memory."""
    return Notes(
        entries=np.empty((room, 4 + block.wide), dtype=np.int64),
        first=np.zeros(tracked, dtype=np.int64),
        block=np.full(tracked, -1, dtype=np.int64),
        end=np.zeros(1, dtype=np.int64),
    )


def by_second_of(organizations: int, block: Block) -> BySecond:
    """Makes rough keys of a lattice of so many organizations, or none at all."""
    count = 2**organizations if organizations else 0
    sizes = range(organizations + 1)
    weights = [
        [factorial(size - 1) * factorial(n - 1 - size) if 0 < size < n else 0 for size in sizes]
        for n in sizes
    ]
    return BySecond(
        used=np.zeros(1, dtype=np.int64),
        asked=np.zeros(1, dtype=np.int64),
        members=np.bitwise_count(np.arange(count)).astype(np.int64),
        weights=np.array(weights, dtype=np.int64),
        potential=np.zeros((count, ((block.seconds - 1) >> block.cell_bits) + 2)),
        made=np.zeros(1, dtype=np.int64),
        cell_bits=np.array([block.cell_bits], dtype=np.int64),
        doubt=np.array([block.doubt]),
        rough=np.zeros(organizations),
        exact=np.zeros(organizations, dtype=np.int64),
    )


def wrapped(number: int) -> np.int64:
    """Returns a number modulo 2^64, as one limb has it."""
    return np.int64((int(number) + 2**63) % 2**64 - 2**63)
