"""Running jobs of a coalition, as a binary heap of their ends."""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined
from shapleyprio.replay.kernel.state import NEVER, Ints

COUNT_BITS = 24
OWNER_BITS = 8
LARGEST_COUNT = 2**COUNT_BITS - 1
LARGEST_OWNER = 2**OWNER_BITS - 1


@inlined
def packed(job: int, owner: int, processors: int) -> int:
    """What ends, in one number."""
    return (job << (OWNER_BITS + COUNT_BITS)) | (owner << COUNT_BITS) | processors


@inlined
def push(ends: Ints, whats: Ints, first: int, size: int, end: int, what: int) -> None:
    """Puts something that ends then into the heap at `first`, which had `size` entries."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if ends[first + above] <= end:
            break
        ends[first + place] = ends[first + above]
        whats[first + place] = whats[first + above]
        place = above
    ends[first + place] = end
    whats[first + place] = what


@inlined
def pop(ends: Ints, whats: Ints, first: int, size: int) -> None:
    """Takes away what ends first from the heap at `first`, which had `size` entries."""
    last = size - 1
    end, what = ends[first + last], whats[first + last]
    ends[first + last] = NEVER  # so that every place above has two below it
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        below += int(ends[first + below + 1] < ends[first + below])
        if end <= ends[first + below]:
            break
        ends[first + place] = ends[first + below]
        whats[first + place] = whats[first + below]
        place = below
    ends[first + place] = end
    whats[first + place] = what
