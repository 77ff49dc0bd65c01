"""Ref on several cores: parts of the lattice, each some blocks ahead of those that need it.

The lattice is cut by its last organizations: coalitions with the same ones of these make a part.
A part needs of another one no more than the values of the block it works on, so the parts
without those organizations run ahead, and all are at work at once. The values of some blocks
are kept for those behind.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from shapleyprio.replay.kernel.lattice import arriving, lattice_keys, run_part
from shapleyprio.replay.kernel.state import Coalitions, Jobs, Record, World

FEWEST_ORGANIZATIONS = 11
"""With fewer, sharing out the work costs more than it saves."""

KEPT = 4
"""How many blocks the values of which are kept: the first part is so far ahead of the last."""


def on_many_cores(
    jobs: Jobs, state: Coalitions, record: Record, seconds: int, length: int, cores: int
) -> Callable[[int], None]:
    """As `lattice.on_one_core`, with so many threads; every decision is the same."""
    organizations = int(state.members[-1]).bit_length()
    cut = max(2, (2 * cores - 1).bit_length())  # two parts or more for every thread
    size = 2 ** (organizations - cut)
    kept = [lattice_keys(organizations, seconds) for _ in range(KEPT)]
    arrivals = arriving(jobs, -(-length // seconds), seconds)
    progress = Progress([0] * 2**cut)

    def work(part: int, block: int) -> int:
        world = World(jobs, state, kept[block % KEPT], record)
        until = min((block + 1) * seconds, length)
        first, last = max(part * size, 1), (part + 1) * size
        run_part(world, first, last, arrivals[block], until)
        return part

    def run(until: int) -> None:
        at_work: dict[int, Future[int]] = {}
        with ThreadPoolExecutor(cores) as threads:
            while not progress.reached(until):
                for part in progress.ready(until, but=at_work):
                    if len(at_work) < cores:
                        block = progress.done[part]
                        if part == 0:  # the first that comes to a block
                            kept[block % KEPT].begin[:] = block * seconds, 1
                        at_work[part] = threads.submit(work, part, block)
                for future in wait(at_work.values(), return_when=FIRST_COMPLETED).done:
                    part = future.result()
                    progress.done[part] += 1
                    del at_work[part]

    return run


@dataclass(slots=True)
class Progress:
    """How many blocks each part has behind it; parts are numbered by the bits they were cut by."""

    done: list[int]

    def reached(self, until: int) -> bool:
        """Whether all parts have come so far."""
        return min(self.done) >= until

    def ready(self, until: int, *, but: Container[int]) -> list[int]:
        """Parts that have what their next block needs, those furthest behind first."""
        parts = range(len(self.done))
        found = [part for part in parts if part not in but and self._is_ready(part, until)]
        return sorted(found, key=self.done.__getitem__)

    def _is_ready(self, part: int, until: int) -> bool:
        block = self.done[part]
        if block >= until or block - min(self.done) >= KEPT:
            return False
        return all(self.done[smaller] > block for smaller in _one_less(part))


def _one_less(part: int) -> Iterator[int]:
    return (part ^ (1 << bit) for bit in range(part.bit_length()) if part >> bit & 1)
