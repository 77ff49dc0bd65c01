"""Ref: every coalition of the consortium at once, each deciding by its own Shapley values.

By Hart & Mas-Colell's potential P(C) = (v(C) + Σ_{u∈C} P(C∖u)) / |C| the Shapley value of u in C
is φ_u = P(C) − P(C∖u). Multiplied with |C|!, nothing has to be divided:

    R(C) = |C|!·P(C) = (|C|−1)!·v(C) + Σ_{u∈C} R(C∖u)

and the largest φ_u − ψ_u is the least R(C∖u) + (|C|−1)!·ψ_u. That is a sum of integers, kept
modulo 2^64 for every second of a block, or modulo 2^128 (`wide`); beside it a rounded R at the
block's begin distinguishes what differs by too much for that (`worth.precedes`). Where 64 bits are
enough, rough keys decide most choices, and exact ones are added up without rows for the others
(`by_second`), unless these are many.

Each is a multiple of n! / lcm(1, …, n), with n = |C|−1: P(C∖u) is a sum of values, each divided by
some m·binom(n, m), which divides lcm(1, …, n). The odd part of that can be divided by modulo 2^64,
and what is left is compared, so that larger differences are known exactly and blocks can be longer.

A job that starts at t adds nothing to any value at t. So within a moment no coalition depends
on what another one decides, and within a block one depends on its own subsets only, which have
smaller numbers: a coalition's number has the bits of its members.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import factorial, lcm

import numpy as np

from shapleyprio.replay.compiled import kernel
from shapleyprio.replay.kernel.by_second import is_cheaper, make_potentials
from shapleyprio.replay.kernel.codes import KEYED
from shapleyprio.replay.kernel.engine import advance, any_of
from shapleyprio.replay.kernel.horizon import has_room, with_more_room
from shapleyprio.replay.kernel.keys import (
    Block,
    Ints,
    Keys,
    by_second_of,
    keys_of,
)
from shapleyprio.replay.kernel.notes import begin_block
from shapleyprio.replay.kernel.state import Coalitions, Jobs, Record, World, pieces_of
from shapleyprio.replay.kernel.values import value_coalition

LISTS = 2**12
"""There is room for so many longest notes; those of all coalitions are much shorter together."""


def on_one_core(
    jobs: Jobs, state: Coalitions, record: Record, block: Block, length: int
) -> Iterator[int]:
    """Brings all coalitions to the end of the window, in blocks.

    Yields:
        0 when everything is compiled, then the second that was reached, now and then.
    """
    keys = lattice_keys(state.utility.shape[1], block, by_second=True)
    seconds = block.seconds
    world = World(jobs, state, keys, record)
    blocks = -(-length // seconds)
    arrivals = arriving(jobs, blocks, seconds)
    run_blocks(world, arrivals, 0, 0, length)
    yield 0
    for first, last in pairwise((0, *pieces_of(blocks))):
        block_reached = first
        while block_reached < last:
            _, block_reached = run_blocks(world, arrivals, block_reached, last, length)
            if block_reached < last:
                world = world._replace(state=with_more_room(world.state, seconds))
        yield min(last * seconds, length)


def lattice_keys(organizations: int, block: Block, *, by_second: bool, more_lists: int = 0) -> Keys:
    """Makes rows for R(C) of all coalitions C.

    Args:
        organizations: k.
        block: of keys.
        more_lists: longest notes for which there is room besides LISTS; when it is full, rows are
            made of what is noted. Where keys are found by second there is room for all.
        by_second: whether keys may be found so if one limb is enough.
    """
    count = 2**organizations
    by = by_second_of(organizations if by_second and not block.wide else 0, block)
    keys = keys_of(
        rows=count,
        coalitions=count,
        block=block,
        lattice=True,
        tracked=count,
        lists=count if len(by.members) != 0 else min(count, LISTS + more_lists),
    )
    factors = [factorial(members - 1) for members in range(1, organizations + 1)]
    divisors = [odd_divisor(members) for members in range(1, organizations + 1)]
    inverses = [pow(divisor, -1, 2**64) for divisor in divisors]
    others = np.bitwise_count(np.arange(1, count)).astype(np.int64) - 1
    keys.factor[1:] = np.array(factors)[others]
    keys.inverse[1:] = np.array(inverses, dtype=np.uint64).view(np.int64)[others]
    keys.shrink[1:] = np.array([1 / divisor for divisor in divisors])[others]
    return keys._replace(by_second=by)


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


@kernel
def run_blocks(world: World, arriving: Ints, first: int, last: int, length: int) -> tuple[int, int]:
    """Brings all coalitions through the blocks from `first` to before `last`.

    Values are made only where some coalition has to choose, and then of smaller numbers only.

    Returns:
        In how many blocks there was a choice, and the block that was reached: an earlier one than
        `last` where the past needs more room (`horizon.with_more_room`).
    """
    choices = 0
    state, keys = world.state, world.keys
    seconds, every = keys.rows.shape[1], len(state.free)
    by_second = keys.by_second
    for block in range(first, last):
        if not has_room(state, seconds):
            return choices, block
        use_cheaper(keys)
        begin_block(keys, block * seconds)
        until = min((block + 1) * seconds, length)
        if by_second.used[0] != 0:
            choices += run_by_second(world, arriving[block], until)
        else:
            choices += run_lazily(world, 1, every, arriving[block], until)
    return choices, last


@kernel
def use_cheaper(keys: Keys) -> None:
    """Decides by what the last blocks asked for whether keys are found by second or in rows.

    While they are in rows that counts less with each block, so that both are tried now and then.
    """
    by = keys.by_second
    by.used[0] = len(by.members) != 0 and is_cheaper(by.asked[0], keys.rows)
    by.asked[0] = 0 if by.used[0] != 0 else by.asked[0] >> 1


@kernel
def run_by_second(world: World, arriving: int, until: int) -> bool:
    """Brings all coalitions through the block of the keys, with keys at single seconds.

    Returns:
        Whether there was a choice.
    """
    keys = world.keys
    keys.begin[1], keys.by_second.made[0] = 1, 1
    advance(any_of(KEYED), world, any_of(1), len(world.state.free), arriving, until)
    return bool(keys.begin[3] != 0)


@kernel
def run_lazily(world: World, first: int, last: int, arriving: int, until: int) -> bool:
    """Brings coalitions `first` to before `last` through the block of the keys.

    Values are made only if one of them has to choose, and then of smaller numbers only.

    Returns:
        Whether there was a choice.
    """
    state, keys = world.state, world.keys
    c = any_of(first)
    while c < last:
        c = advance(any_of(KEYED), world, c, last, arriving, until)
        if c < last:
            value_before(state, keys, c)
            if state.undecided[c] == 0:  # it stopped for want of room
                keys.notes.end[0] = 0
    return bool(keys.begin[3] != 0)


@kernel
def value_before(state: Coalitions, keys: Keys, c: int) -> None:
    """Makes the rows of all coalitions with smaller numbers than c that have none yet."""
    for valued in range(max(keys.begin[2] - 1, 1), c):
        value_coalition(state, keys, valued)
    keys.begin[2] = c + 1


@kernel
def run_part(world: World, first: int, last: int, arriving: int, until: int) -> None:
    """Brings coalitions `first` to before `last` through the block of the keys, with their values.

    What they choose by, the values of their subsets, must be there.
    """
    keys, notes, by = world.keys, world.keys.notes, world.keys.by_second
    if by.used[0] != 0:
        by.made[0] = first
        advance(any_of(KEYED), world, first, last, arriving, until)
        make_potentials(notes, by, last, keys.begin[0])
    else:
        begin = notes.end[0]
        for c in range(first, last):
            notes.end[0] = begin
            advance(any_of(KEYED), world, c, c + 1, arriving, until)
            value_coalition(world.state, keys, c)
