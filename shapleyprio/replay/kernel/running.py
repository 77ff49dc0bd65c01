"""Running jobs of a coalition, as a binary heap of their ends: an end, and behind it what ends."""

from __future__ import annotations

import numpy as np

from shapleyprio.replay.compiled import inlined
from shapleyprio.replay.kernel.keys import Ints
from shapleyprio.replay.kernel.state import NEVER

COUNT_BITS = 24
OWNER_BITS = 8
LARGEST_COUNT: int = 2**COUNT_BITS - 1
LARGEST_OWNER = 2**OWNER_BITS - 1


@inlined
def packed(job: int, owner: int, processors: int) -> int:
    """Packs what ends into one number."""
    return (job << (OWNER_BITS + COUNT_BITS)) | (owner << COUNT_BITS) | processors


@inlined
def _at(place: int) -> np.uint64:
    """Returns a place that is not counted from the end if it is negative, which takes time."""
    return np.uint64(place)


@inlined
def push(heap: Ints, first: int, size: int, end: int, what: int) -> None:
    """Puts something that ends then into the heap at `first`, which had `size` entries."""
    begin, place = 2 * first, 2 * size
    while place > 0:
        above = ((place >> 1) - 1) & -2
        if heap[_at(begin + above)] <= end:
            break
        heap[_at(begin + place)] = heap[_at(begin + above)]
        heap[_at(begin + place + 1)] = heap[_at(begin + above + 1)]
        place = above
    heap[_at(begin + place)] = end
    heap[_at(begin + place + 1)] = what


@inlined
def pop(heap: Ints, first: int, size: int) -> None:
    """Takes away what ends first from the heap at `first`, which had `size` entries."""
    begin, last = 2 * first, 2 * (size - 1)
    end, what = heap[_at(begin + last)], heap[_at(begin + last + 1)]
    heap[_at(begin + last)] = NEVER  # so that every place above has two below it
    place = 0
    while True:
        below = 2 * place + 2
        if below >= last:
            break
        below += 2 * int(heap[_at(begin + below + 2)] < heap[_at(begin + below)])
        if end <= heap[_at(begin + below)]:
            break
        heap[_at(begin + place)] = heap[_at(begin + below)]
        heap[_at(begin + place + 1)] = heap[_at(begin + below + 1)]
        place = below
    heap[_at(begin + place)] = end
    heap[_at(begin + place + 1)] = what
