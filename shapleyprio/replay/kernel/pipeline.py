"""Ref on several cores: parts of the lattice, each some blocks ahead of those that need it.

The lattice is cut by its last organizations: coalitions with the same ones of these make a part.
A part needs of another one no more than the values of the block it works on, so the parts
without those organizations run ahead, and all are at work at once. The values of some blocks
are kept for those behind.

That makes the values of every block. Where there is nothing to choose most of the time, one core
that makes only those it needs is faster: what the last blocks were like decides how it goes on.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from shapleyprio.replay.kernel.keys import Block, Notes, list_room, notes_of, with_other_rows
from shapleyprio.replay.kernel.lattice import arriving, lattice_keys, run_blocks, run_part
from shapleyprio.replay.kernel.state import Coalitions, Jobs, Record, World

FEWEST_ORGANIZATIONS = 11
"""With fewer, sharing out the work costs more than it saves."""

SHORT_STRETCH, LONG_STRETCH = 2, 32
"""Blocks until the way of working is chosen anew, for one core and for all of them."""

BLOCKS_KEPT = 4
"""Blocks of which the values are kept: by so many the first part can be ahead of the last."""

MANY_ORGANIZATIONS = 14
FEWEST_BLOCKS_KEPT = 2
"""From so many on, because of the memory; parts wait for each other more often."""


def on_many_cores(
    jobs: Jobs, state: Coalitions, record: Record, block: Block, length: int, cores: int
) -> Iterator[int]:
    """Runs as `lattice.on_one_core` does, with so many threads; every decision is the same."""
    organizations, seconds = state.utility.shape[1], block.seconds
    cut = max(2, (2 * cores - 1).bit_length())  # two parts or more for every thread
    size = 2 ** (organizations - cut)
    keys = lattice_keys(organizations, block)
    kept = FEWEST_BLOCKS_KEPT if organizations >= MANY_ORGANIZATIONS else BLOCKS_KEPT
    every_keys = [keys, *(with_other_rows(keys) for _ in range(kept - 1))]
    worlds = [World(jobs, state, keys, record) for keys in every_keys]
    # one list at a time: values are made of it at once
    lists = [notes_of(0, list_room(block), block) for _ in range(2**cut)]
    blocks = -(-length // seconds)
    arrivals = arriving(jobs, blocks, seconds)

    def work(part: int, number: int) -> int:
        until = min((number + 1) * seconds, length)
        first, last = max(part * size, 1), (part + 1) * size
        world = _with_list(worlds[number % kept], lists[part])
        run_part(world, first, last, arrivals[number], until)
        return part

    def side_by_side(first: int, last: int) -> int:
        progress = PipelineProgress([first] * 2**cut, last, kept)
        at_work: dict[int, Future[int]] = {}
        choices = 0
        while not progress.is_complete():
            for part in progress.ready(but=at_work)[: cores - len(at_work)]:
                number = progress.done[part]
                if part == 0:  # the first that comes to a block
                    worlds[number % kept].keys.begin[:] = number * seconds, 1, 0, 0
                at_work[part] = threads.submit(work, part, number)
            for future in wait(at_work.values(), return_when=FIRST_COMPLETED).done:
                part = future.result()
                if part == 2**cut - 1:  # the last that leaves it
                    choices += int(worlds[progress.done[part] % kept].keys.begin[3])
                progress.done[part] += 1
                del at_work[part]
        return choices

    run_part(worlds[0], 0, 0, 0, 0)
    run_blocks(worlds[0], arrivals, 0, 0, length)
    yield 0
    with ThreadPoolExecutor(cores) as threads:
        first, crowded = 0, False
        while first < blocks:
            last = min(first + (LONG_STRETCH if crowded else SHORT_STRETCH), blocks)
            if crowded:
                choices = side_by_side(first, last)
            else:
                choices, _ = run_blocks(worlds[0], arrivals, first, last, length)
            crowded = 2 * choices > last - first
            first = last
            yield min(first * seconds, length)


def _with_list(world: World, own: Notes) -> World:
    """Gives a part a list of its own to write to."""
    notes = world.keys.notes._replace(entries=own.entries, end=own.end)
    return world._replace(keys=world.keys._replace(notes=notes))


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
