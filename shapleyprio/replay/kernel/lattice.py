"""Ref: every coalition of the consortium at once, each deciding by its own Shapley values.

By Hart & Mas-Colell's potential P(C) = (v(C) + Σ_{u∈C} P(C∖u)) / |C| the Shapley value of u in C
is φ_u = P(C) − P(C∖u). Multiplied with |C|!, nothing has to be divided:

    R(C) = |C|!·P(C) = (|C|−1)!·v(C) + Σ_{u∈C} R(C∖u)

and the largest φ_u − ψ_u is the least R(C∖u) + (|C|−1)!·ψ_u. That is a sum of integers, kept
modulo 2^64 for every second of a block, or modulo 2^128 (`wide`); beside it a rounded R at the
block's begin distinguishes what differs by too much for that (`worth.precedes`).

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

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.codes import KEYED
from shapleyprio.replay.kernel.engine import advance, any_of
from shapleyprio.replay.kernel.horizon import has_room, next_due, with_more_room
from shapleyprio.replay.kernel.state import (
    Block,
    Coalitions,
    Ints,
    Jobs,
    Keys,
    Record,
    World,
    keys_of,
    pieces_of,
)
from shapleyprio.replay.kernel.values import value_coalition


def on_one_core(
    jobs: Jobs, state: Coalitions, record: Record, block: Block, length: int
) -> Iterator[int]:
    """Brings all coalitions to the end of the window, in blocks.

    Yields:
        0 when everything is compiled, then the second that was reached, now and then.
    """
    keys, seconds = lattice_keys(state.utility.shape[1], block), block.seconds
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


def lattice_keys(organizations: int, block: Block) -> Keys:
    """Makes rows for R(C) of all coalitions C."""
    count = 2**organizations
    keys = keys_of(rows=count, tracked=count, coalitions=count, block=block, lattice=True)
    factors = [factorial(members - 1) for members in range(1, organizations + 1)]
    divisors = [odd_divisor(members) for members in range(1, organizations + 1)]
    inverses = [pow(divisor, -1, 2**64) for divisor in divisors]
    others = np.bitwise_count(np.arange(1, count)).astype(np.int64) - 1
    keys.factor[1:] = np.array(factors)[others]
    keys.inverse[1:] = np.array(inverses, dtype=np.uint64).view(np.int64)[others]
    keys.shrink[1:] = np.array([1 / divisor for divisor in divisors])[others]
    return keys


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
    seconds = keys.rows.shape[1]
    for block in range(first, last):
        if not has_room(state, seconds):
            return choices, block
        keys.begin[0] = block * seconds
        until = min((block + 1) * seconds, length)
        choices += run_lazily(world, 1, len(state.free), arriving[block], until)
    return choices, last


@kernel
def run_lazily(world: World, first: int, last: int, arriving: int, until: int) -> bool:
    """Brings coalitions `first` to before `last` through the block of the keys.

    Values are made only if one of them has to choose, and then of smaller numbers only.

    Returns:
        Whether there was a choice.
    """
    state, keys = world.state, world.keys
    valued = any_of(1)
    for c in range(first, last):
        keys.begin[1] = valued == c
        if not _advance(world, c, arriving, until):
            while valued < c:
                value_coalition(state, keys, valued)
                valued += 1
            keys.begin[1] = 1
            _advance(world, c, arriving, until)
    return valued > 1


@kernel
def run_part(world: World, first: int, last: int, arriving: int, until: int) -> None:
    """Brings coalitions `first` to before `last` through the block of the keys, with their values.

    What they choose by, the values of their subsets, must be there.
    """
    for c in range(first, last):
        _advance(world, c, arriving, until)
        value_coalition(world.state, world.keys, c)


@inlined
def _advance(world: World, c: int, arriving: int, until: int) -> bool:
    state = world.state
    next_event = min(state.next_end[c], next_due(state, c))
    idle = state.undecided[c] == 0 and next_event >= until and arriving & c == 0
    return idle or advance(any_of(KEYED), world, c, until)
