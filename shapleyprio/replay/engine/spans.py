"""Spans of Ref's lattice: coalitions whose numbers follow each other, for a process of their own.

A coalition depends on nothing but the values of its subsets, which have smaller numbers, and these
values on nothing but how many processors are at work. So a span needs of those before it at which
seconds the number of working processors changed, of those behind it nothing: what goes from one to
the next goes one way, and may go in large pieces. Every span makes the values of all before it
anew: a row of keys takes as long to be sent as to be made, and is a hundred times as long as what
changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.beginning import coalitions_of, members_of
from shapleyprio.replay.engine.keys import Block, Ints, Keys
from shapleyprio.replay.engine.lattice import arriving, begin_block, lattice_keys, run_lazily
from shapleyprio.replay.engine.state import Coalitions, Jobs, Record, World
from shapleyprio.replay.native import native, packed

VALUING = 0.25
"""The part of all work on a coalition that is making its values."""


class Changes(NamedTuple):
    """How the numbers of working processors changed in the coalitions of a span, in one block.

    Attributes:
        counts: [c], at how many seconds each one's did.
        seconds: [.], which, from the block's begin on: the first coalition's, the second's, ...
        processors: [.], how many more work from then on, net.
    """

    counts: NDArray[np.uint16]
    seconds: NDArray[np.uint16]
    processors: NDArray[np.int32]


class Span:
    """The coalitions with numbers from `first` to before `last`, each with its schedule.

    Arrays have a row for every coalition; those of others' schedules are never touched, and take
    no memory.

    Args:
        jobs: of all organizations.
        owned: [k], processors of each.
        record: of the coalition of all.
        block: of keys.
        length: seconds of the window.
        first: number of the span's first coalition.
        last: number of the one behind it.
    """

    def __init__(
        self,
        jobs: Jobs,
        owned: Ints,
        record: Record,
        block: Block,
        length: int,
        first: int,
        last: int,
    ) -> None:
        k = len(owned)
        members = members_of(np.arange(first, last), k)
        own = coalitions_of(jobs, owned, members, wide=block.wide)
        keys = lattice_keys(k, block, by_second=False, more_lists=last - first)
        self.world = packed(World(jobs, _among(own, first, 2**k), keys, record))
        self.first, self.last = max(first, 1), last
        self.blocks = -(-length // block.seconds)
        self.done = 0
        self._length = length
        self._arrivals = arriving(jobs, self.blocks, block.seconds)
        self._seconds = np.empty((last - first) * block.seconds, dtype=np.uint16)
        self._processors = np.empty((last - first) * block.seconds, dtype=np.int32)

    def __reduce__(self) -> str:
        raise TypeError("a span's schedules change where they are; no copy of them goes elsewhere")

    def run_block(self, before: Iterable[Changes]) -> Changes:
        """Brings the coalitions through the next block.

        Args:
            before: what changed in it, of each span before this one, in their order.

        Returns:
            What changed in this span.
        """
        world, number = self.world, self.done
        seconds = world.keys.rows.shape[1]
        begin_block(world.keys, number * seconds)
        first = 1
        for changes in before:
            # copies: what came from elsewhere may lie at odd addresses
            _repeat(world, first, *map(np.array, changes))
            first += len(changes.counts)
        until = min((number + 1) * seconds, self._length)
        _keep_room(world, self.first, self.last - self.first)
        run_lazily(world, self.first, self.last, int(self._arrivals[number]), until)
        self.done += 1
        counts = np.zeros(self.last - self.first, dtype=np.uint16)
        found = _changes(world.keys, self.first, counts, self._seconds, self._processors)
        return Changes(counts, self._seconds[:found].copy(), self._processors[:found].copy())


def bounds_of(organizations: int, spans: int) -> Ints:
    """Returns where spans begin that take about as long as each other; behind them 2^k.

    A span of a part x of all work, before which are spans of a part y, takes x + VALUING·y of the
    whole, and a coalition's work grows with its members.

    >>> bounds_of(4, 2).tolist()
    [1, 11, 16]
    """
    behind = (1 - VALUING) ** np.arange(1, spans)
    parts = (1 - behind) / (1 - (1 - VALUING) ** spans)
    work = np.cumsum(np.bitwise_count(np.arange(2**organizations)), dtype=np.int64)
    inner = np.searchsorted(work, parts * work[-1])
    return np.concatenate(([1], inner, [2**organizations])).astype(np.int64)


def bytes_of(owned: Ints, block: Block, first: int, last: int) -> int:
    """Returns about how much memory a span takes.

    Args:
        owned: [k], processors of each organization.
        block: of keys.
        first: number of the span's first coalition.
        last: number of the one behind it.
    """
    k, limbs = len(owned), 1 + block.wide
    values = block.seconds * 8 * limbs + 8 * limbs + 80
    noted = block.seconds // 8 * (24 + 8 * limbs)  # as if it changed at one second of eight
    schedule = k * (8 * limbs + 49) + 8 * int(owned.sum()) + 6 * block.seconds + noted + 80
    return last * values + (last - first) * schedule


def _among(own: Coalitions, first: int, count: int) -> Coalitions:
    """Puts the rows of a span where they belong among those of all coalitions."""

    def rows(array: np.ndarray) -> np.ndarray:
        placed = np.zeros((count, *array.shape[1:]), dtype=array.dtype)
        placed[first : first + len(array)] = array
        return placed

    heap = np.zeros(count + 1, dtype=np.int64)
    heap[first : first + len(own.heap)] = own.heap
    whole = {"heap": heap, "ends": own.ends, "expected": own.expected, "past": own.past}
    each = {name: rows(array) for name, array in own._asdict().items() if name not in whole}
    fields: dict[str, Any] = whole | each
    return Coalitions(**fields)


@native("spans_repeat")
def _repeat(
    world: World,
    first: int,
    counts: NDArray[np.uint16],
    seconds: NDArray[np.uint16],
    processors: NDArray[np.int32],
) -> None:
    """Lets coalitions from `first` on change as they did elsewhere, in the block of the keys."""


@native("spans_keep_room")
def _keep_room(world: World, first: int, lists: int) -> None:
    """Makes rows of what is noted, if so many lists more may be too many, from `first` on."""


@native("spans_changes")
def _changes(
    keys: Keys,
    first: int,
    counts: NDArray[np.uint16],
    seconds: NDArray[np.uint16],
    processors: NDArray[np.int32],
) -> int:
    """Writes down what changed in coalitions from `first` on, and returns at how many seconds."""
