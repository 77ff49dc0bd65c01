"""When processors get free: running jobs as a heap whose places have four places below each.

An entry packs the second of an end with the processors that get free then. It is half as deep and
half as large as the heap of the engine (`kernel.running`), which has more to say of a job.
"""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined
from shapleyprio.replay.kernel.keys import Ints
from shapleyprio.replay.kernel.running import COUNT_BITS, LARGEST_COUNT
from shapleyprio.replay.kernel.state import NEVER

LATEST_END = (NEVER >> COUNT_BITS) - 1
"""A later second does not fit into an entry."""

BELOW = 4
"""A heap has so many places more than entries, and `NEVER` in all that are empty."""


@inlined
def entry_of(end: int, processors: int) -> int:
    """Packs an entry."""
    return (end << COUNT_BITS) | processors


@inlined
def end_of(entry: int) -> int:
    """Returns when an entry's processors get free."""
    return entry >> COUNT_BITS


@inlined
def processors_of(entry: int) -> int:
    """Returns how many processors get free with an entry."""
    return entry & LARGEST_COUNT


@inlined
def push(heap: Ints, size: int, entry: int) -> None:
    """Puts an entry into a heap that had `size` of them."""
    place = size
    while place > 0:
        above = (place - 1) >> 2
        if heap[above] <= entry:
            break
        heap[place] = heap[above]
        place = above
    heap[place] = entry


@inlined
def pop(heap: Ints, size: int) -> None:
    """Takes the first entry from a heap that had `size` of them."""
    last = size - 1
    entry = heap[last]
    heap[last] = NEVER
    place = 0
    while True:
        below = BELOW * place + 1
        if below >= last:
            break
        left = below + int(heap[below + 1] < heap[below])
        right = below + 2 + int(heap[below + 3] < heap[below + 2])
        first = right if heap[right] < heap[left] else left
        if entry <= heap[first]:
            break
        heap[place] = heap[first]
        place = first
    if last > 0:
        heap[place] = entry
