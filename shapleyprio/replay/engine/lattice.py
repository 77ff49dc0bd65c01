"""Ref: every coalition of the consortium at once, each deciding by its own Shapley values.

By Hart & Mas-Colell's potential P(C) = (v(C) + Σ_{u∈C} P(C∖u)) / |C| the Shapley value of u in C
is φ_u = P(C) − P(C∖u). Multiplied with |C|!, nothing has to be divided:

    R(C) = |C|!·P(C) = (|C|−1)!·v(C) + Σ_{u∈C} R(C∖u)

and the largest φ_u − ψ_u is the least R(C∖u) + (|C|−1)!·ψ_u. That is a sum of integers, kept
modulo 2^64 for every second of a block, or modulo 2^128 (`wide`); beside it a rounded R at the
block's begin distinguishes what differs by too much for that (`precedes` in `native/moments.h`).
Where 64 bits are enough, rough keys decide most choices, and exact ones are added up without rows
for the others (`native/by_second.h`), unless these are many.

Each is a multiple of n! / lcm(1, …, n), with n = |C|−1: P(C∖u) is a sum of values, each divided by
some m·binom(n, m), which divides lcm(1, …, n). The odd part of that can be divided by modulo 2^64,
and what is left is compared, so that larger differences are known exactly and blocks can be longer.

A job that starts at t adds nothing to any value at t. So within a moment no coalition depends
on what another one decides, and within a block one depends on its own subsets only, which have
smaller numbers: a coalition's number has the bits of its members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import factorial, lcm

import numpy as np

from shapleyprio.replay.engine.horizon import with_more_room
from shapleyprio.replay.engine.keys import Block, Ints, Keys, by_second_of, keys_of
from shapleyprio.replay.engine.state import Jobs, World, pieces_of
from shapleyprio.replay.native import native, packed

LISTS = 2**12
"""There is room for so many longest notes; those of all coalitions are much shorter together."""


def on_one_core(world: World, length: int) -> Iterator[int]:
    """Brings all coalitions to the end of the window, in blocks.

    Yields:
        The second that was reached, now and then.
    """
    world, seconds = packed(world), world.keys.rows.shape[1]
    blocks = -(-length // seconds)
    arrivals, choices = arriving(world.jobs, blocks, seconds), np.zeros(1, dtype=np.int64)
    for first, last in pairwise((0, *pieces_of(blocks))):
        reached = first
        while reached < last:
            reached = run_blocks(world, arrivals, reached, last, length, choices)
            if reached < last:
                world = packed(world._replace(state=with_more_room(world.state, seconds)))
        yield min(last * seconds, length)


def lattice_keys(
    organizations: int,
    block: Block,
    *,
    more_lists: int = 0,
    unions: Sequence[int] | None = None,
) -> Keys:
    """Makes rows for R(C) of all coalitions C.

    Args:
        organizations: k.
        block: of keys.
        unions: of each organization the number of its union, if not all stand alone: then what is
            noted of all coalitions is enough (`native/owen.h`), and rows are never written to.
        more_lists: longest notes for which there is room besides LISTS; when it is full, rows are
            made of what is noted. Where keys are found by second there is room for all.
    """
    count = 2**organizations
    by_second = by_second_of(0 if block.wide and unions is None else organizations, block)
    keys = keys_of(
        rows=count,
        coalitions=count,
        block=block,
        lattice=True,
        tracked=count,
        lists=count if len(by_second.members) != 0 else min(count, LISTS + more_lists),
    )
    factors = [factorial(members - 1) for members in range(1, organizations + 1)]
    divisors = [odd_divisor(members) for members in range(1, organizations + 1)]
    inverses = [pow(divisor, -1, 2**64) for divisor in divisors]
    others = np.bitwise_count(np.arange(1, count)).astype(np.int64) - 1
    keys.factor[1:] = np.array(factors)[others]
    keys.inverse[1:] = np.array(inverses, dtype=np.uint64).view(np.int64)[others]
    keys.shrink[1:] = np.array([1 / divisor for divisor in divisors])[others]
    return keys._replace(by_second=by_second)


def odd_divisor(members: int) -> int:
    """Returns the largest odd number that divides all keys by which so many members choose.

    >>> [odd_divisor(members) for members in (1, 6, 7, 10)]
    [1, 1, 3, 9]
    """
    others = members - 1
    divisor = factorial(others) // lcm(*range(1, others + 1))
    return divisor // (divisor & -divisor)


def arriving(jobs: Jobs, blocks: int, seconds: int) -> Ints:
    """Returns whose jobs are released in each block: bit u is set for organization u."""
    found = np.zeros(blocks, dtype=np.int64)
    np.bitwise_or.at(found, jobs.release // seconds, 1 << jobs.organization)
    return found


@native("lattice_run_blocks")
def run_blocks(
    world: World, arriving: Ints, first: int, last: int, length: int, choices: Ints
) -> int:
    """Brings all coalitions through the blocks from `first` to before `last`.

    Values are made only where some coalition has to choose, and then of smaller numbers only.

    Args:
        world: all coalitions.
        arriving: [blocks], as `arriving` returns it.
        first: number of the first block.
        last: number of the one behind the last.
        length: of the window in seconds.
        choices: [1], the number of blocks in which there was a choice is added to it.

    Returns:
        The block that was reached: an earlier one than `last` where the past needs more room
        (`horizon.with_more_room`).
    """


@native("lattice_use_cheaper")
def use_cheaper(keys: Keys) -> None:
    """Decides by what the last blocks asked for whether keys are found by second or in rows."""


@native("lattice_run_part")
def run_part(world: World, first: int, last: int, arriving: int, until: int) -> None:
    """Brings coalitions `first` to before `last` through the block of the keys, with their values.

    What they choose by, the values of their subsets, must be there.
    """


@native("lattice_make_potentials")
def make_potentials(keys: Keys, last: int) -> None:
    """Makes the potentials of all coalitions with smaller numbers that have none yet."""
