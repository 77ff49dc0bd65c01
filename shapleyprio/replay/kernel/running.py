"""Running jobs of a coalition, as a binary heap of their ends."""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined
from shapleyprio.replay.kernel.state import NEVER, Ints

COUNT_BITS = 24
OWNER_BITS = 8
LARGEST_COUNT: int = 2**COUNT_BITS - 1
LARGEST_OWNER = 2**OWNER_BITS - 1


@inlined
def packed(job: int, owner: int, processors: int) -> int:
    """Packs what ends into one number."""
    return (job << (OWNER_BITS + COUNT_BITS)) | (owner << COUNT_BITS) | processors


@inlined
def push(heap: Ints, first: int, size: int, end: int, what: int) -> None:
    """Puts something that ends then into the heap at `first`, which had `size` entries."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if heap[first + above, 0] <= end:
            break
        heap[first + place, 0] = heap[first + above, 0]
        heap[first + place, 1] = heap[first + above, 1]
        place = above
    heap[first + place, 0] = end
    heap[first + place, 1] = what


@inlined
def pop(heap: Ints, first: int, size: int) -> None:
    """Takes away what ends first from the heap at `first`, which had `size` entries."""
    last = size - 1
    end, what = heap[first + last, 0], heap[first + last, 1]
    heap[first + last, 0] = NEVER  # so that every place above has two below it
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        below += int(heap[first + below + 1, 0] < heap[first + below, 0])
        if end <= heap[first + below, 0]:
            break
        heap[first + place, 0] = heap[first + below, 0]
        heap[first + place, 1] = heap[first + below, 1]
        place = below
    heap[first + place, 0] = end
    heap[first + place, 1] = what
