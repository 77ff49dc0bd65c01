"""Ref on several cores: parts of the lattice, each some blocks ahead of those that need it.

The lattice is cut by its last organizations: coalitions with the same ones of these make a part.
A part needs of another one no more than the values of the block it works on, so the parts
without those organizations run ahead, and all are at work at once. The values of some blocks
are kept for those behind.

That makes the values of every block. Where there is nothing to choose most of the time, one core
that makes only those it needs is faster: what the last blocks were like decides how it goes on.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from shapleyprio.replay.engine.keys import Block, BySecond, Ints, list_room
from shapleyprio.replay.engine.lattice import (
    arriving,
    lattice_keys,
    run_blocks,
    run_part,
    use_cheaper,
)
from shapleyprio.replay.engine.state import World
from shapleyprio.replay.native import packed

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
