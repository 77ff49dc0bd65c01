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

On several cores the lattice is cut by its last organizations: coalitions with the same ones of
these make a part. A part needs of another one no more than the values of the block it works on, so
the parts without those organizations run ahead, and all are at work at once. The values of some
blocks are kept for those behind. That makes the values of every block. Where there is nothing to
choose most of the time, one core that makes only those it needs is faster: what the last blocks
were like decides how it goes on.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import pairwise
from math import factorial, lcm

import numpy as np

from shapleyprio.replay.engine.keys import (
    Block,
    BySecond,
    Ints,
    Keys,
    by_second_of,
    keys_of,
    list_room,
)
from shapleyprio.replay.engine.state import Coalitions, Jobs, World, pieces_of
from shapleyprio.replay.native import native, packed


def with_more_room(state: Coalitions, seconds: int) -> Coalitions:
    """Returns the same schedules with room for so many seconds, and for twice what is there."""
    past = state.past
    wanted = 2 * (past.newest - past.oldest) + past.in_a_second * seconds
    room = np.maximum(np.diff(past.first), np.minimum(wanted, past.within))
    first = np.concatenate(([0], np.cumsum(room)))
    events = np.empty((first[-1], 2), dtype=np.int64)
    for c, (oldest, newest) in enumerate(zip(past.oldest, past.newest, strict=True)):
        numbers = np.arange(oldest, newest)
        before = past.events[past.first[c] : past.first[c + 1]]
        events[first[c] + numbers % room[c]] = before[numbers % len(before)]
    return state._replace(past=past._replace(first=first, events=events))


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
        (`with_more_room`).
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


FEWEST_ORGANIZATIONS = 11
"""With fewer, sharing out the work costs more than it saves."""

SHORT_STRETCH, LONG_STRETCH = 2, 32
"""Blocks until the way of working is chosen again, for one core and for all of them."""

BLOCKS_KEPT = 4
"""Blocks of which the values are kept: by so many the first part can be ahead of the last."""

MANY_ORGANIZATIONS = 14
FEWEST_BLOCKS_KEPT = 2
"""From so many on, because of the memory; parts wait for each other more often."""


def on_many_cores(world: World, block: Block, length: int, cores: int) -> Iterator[int]:
    """Runs as `lattice.on_one_core` does, with so many threads; every decision is the same.

    The keys have to have room for a longest list of each part (`parts_for`).
    """
    organizations, seconds = world.state.utility.shape[1], block.seconds
    parts = parts_for(cores)
    size = 2**organizations // parts
    kept = FEWEST_BLOCKS_KEPT if organizations >= MANY_ORGANIZATIONS else BLOCKS_KEPT
    more = (lattice_keys(organizations, block, more_lists=parts) for _ in range(1, kept))
    worlds = [packed(world), *(world._replace(keys=keys) for keys in more)]
    by_second = world.keys.by_second
    lists = size if len(by_second.members) != 0 else 1  # rows are made of a list at once
    own = [(_scratch_of(by_second), np.zeros(1, dtype=np.int64)) for _ in range(parts)]
    own_worlds = [[packed(_with_own(one, *scratch)) for one in worlds] for scratch in own]
    blocks = -(-length // seconds)
    arrivals = arriving(world.jobs, blocks, seconds)
    choices = np.zeros(1, dtype=np.int64)

    def work(part: int, number: int) -> int:
        until = min((number + 1) * seconds, length)
        first, last = max(part * size, 1), (part + 1) * size
        _, end = own[part]
        end[0] = part * lists * list_room(block)
        run_part(own_worlds[part][number % kept], first, last, int(arrivals[number]), until)
        return part

    def side_by_side(first: int, last: int) -> None:
        progress = PipelineProgress([first] * parts, last, kept)
        at_work: dict[int, Future[int]] = {}
        use_cheaper(world.keys)
        while not progress.is_complete():
            for part in progress.ready(but=at_work)[: cores - len(at_work)]:
                number = progress.done[part]
                if part == 0:  # the first that comes to a block
                    worlds[number % kept].keys.begin[:] = number * seconds, 1, 0, 0
                at_work[part] = threads.submit(work, part, number)
            for future in wait(at_work.values(), return_when=FIRST_COMPLETED).done:
                part = future.result()
                if part == parts - 1:  # the last that leaves it
                    choices[0] += int(worlds[progress.done[part] % kept].keys.begin[3])
                progress.done[part] += 1
                del at_work[part]
        _count_asked(by_second, (scratch for scratch, _ in own), last - first)

    with ThreadPoolExecutor(cores) as threads:
        first, crowded = 0, False
        while first < blocks:
            last = min(first + (LONG_STRETCH if crowded else SHORT_STRETCH), blocks)
            choices[0] = 0
            if crowded:
                side_by_side(first, last)
            else:
                run_blocks(worlds[0], arrivals, first, last, length, choices)
            crowded = 2 * choices[0] > last - first
            first = last
            yield min(first * seconds, length)


def parts_for(cores: int) -> int:
    """Returns into how many parts the lattice is cut: two or more for every thread."""
    return 1 << max(2, (2 * cores - 1).bit_length())


def _scratch_of(by_second: BySecond) -> BySecond:
    """Returns what a part of its own writes to; whether keys are found by second holds for all."""
    return by_second._replace(
        asked=np.zeros_like(by_second.asked),
        made=np.zeros_like(by_second.made),
        rough=np.zeros_like(by_second.rough),
        exact=np.zeros_like(by_second.exact),
    )


def _count_asked(by_second: BySecond, parts: Iterable[BySecond], blocks: int) -> None:
    """Adds what all parts asked for, in a block on average, to what is looked at for the next."""
    for scratch in parts:
        by_second.asked[0] += scratch.asked[0] // blocks
        scratch.asked[0] = 0


def _with_own(world: World, scratch: BySecond, end: Ints) -> World:
    """Gives a part what it alone writes to, for the block of a world."""
    keys = world.keys
    return world._replace(
        keys=keys._replace(
            notes=keys.notes._replace(end=end),
            by_second=scratch._replace(potential=keys.by_second.potential),
        )
    )


@dataclass(slots=True)
class PipelineProgress:
    """How far the parts have come; they are numbered by the bits they were cut by.

    Attributes:
        done: how many blocks each part has behind it.
        blocks: how many there are.
        kept: blocks of which the values are kept.
    """

    done: list[int]
    blocks: int
    kept: int

    def is_complete(self) -> bool:
        """Returns whether all parts have come to the end."""
        return min(self.done) == self.blocks

    def ready(self, *, but: Container[int]) -> list[int]:
        """Returns parts that have what their next block needs, those furthest behind first."""
        parts = range(len(self.done))
        found = [part for part in parts if part not in but and self._is_ready(part)]
        return sorted(found, key=self.done.__getitem__)

    def _is_ready(self, part: int) -> bool:
        block = self.done[part]
        if block == self.blocks or block - min(self.done) >= self.kept:
            return False
        return all(self.done[smaller] > block for smaller in _one_less(part))


def _one_less(part: int) -> Iterator[int]:
    return (part ^ (1 << bit) for bit in range(part.bit_length()) if part >> bit & 1)
