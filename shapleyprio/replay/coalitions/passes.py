"""One pass over the jobs of a coalition that serves them first come, first served.

A pass comes to a moment after which it needs a processing time that is only a guess. What it found
until then is its state there, and a later pass, which knows more, goes on from it. A state is one
row of whole numbers: those named below, how many jobs of each organization are in it, the heap
of running jobs (end and processors in one number), and the open ones (organization, number among
its jobs, start, processors), of which it is unknown when they end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shapleyprio.replay.coalitions.game import Bools, Game
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.native import native

NOW, LEFT, CHANGE, FREE, RUNNING, OPEN, PARTS, MOMENT, HIGH, FIXED = range(10)
"""Places in a state: the moment it has come to, processors that its last job still waits for,
changes of processors seen, free processors, entries of the heap, entries of the open jobs, parts of
all jobs that started and are not open, and the sum of the seconds since the begin at which those
are executed, in two limbs. Numbers of fixed size end before `FIXED`."""

OPEN_WIDTH = 4

BELOW = 4
"""A heap has so many places more than entries, and `NEVER` in all that are empty."""


class Arrays(NamedTuple):
    """A game for functions in C; the names are those of `Game`.

    Attributes:
        queued: int64[jobs], each organization's jobs in their order, one organization after the
            other.
        first: int64[k + 1], where those of each organization begin in `queued`.
    """

    organization: Ints
    release: Ints
    processing_time: Ints
    processors: Ints
    certain: Ints
    since: Ints
    owned: Ints
    queued: Ints
    first: Ints


class Room(NamedTuple):
    """Where one pass works; it is overwritten by the next.

    Attributes:
        taken: int64[k], jobs of each organization that were looked at.
        heap, later: int64[n], running jobs until the guesses begin, and after that; both are left
            empty.
        open: int64[n, 4], jobs that run for an unknown time.
    """

    taken: Ints
    heap: Ints
    later: Ints
    open: Ints


def arrays_of(game: Game) -> Arrays:
    """Arranges a game for `advance`."""
    certain = game.processing_time if game.certain is None else game.certain
    count = np.bincount(game.organization, minlength=game.organizations)
    return Arrays(
        organization=_contiguous(game.organization),
        release=_contiguous(game.release),
        processing_time=_contiguous(game.processing_time),
        processors=_contiguous(game.processors),
        certain=_contiguous(certain),
        since=_contiguous(game.since),
        owned=_contiguous(game.owned),
        queued=np.argsort(game.organization.astype(np.int16), kind="stable"),
        first=np.concatenate(([0], np.cumsum(count))),
    )


def _contiguous(array: Ints) -> Ints:
    return np.ascontiguousarray(array, dtype=np.int64)


def room_for(arrays: Arrays) -> Room:
    """Returns room for the passes of one core."""
    k, entries = arrays.owned.shape[1], entries_at_most(arrays)
    return Room(
        taken=np.empty(k, dtype=np.int64),
        heap=np.full(entries + BELOW, NEVER),
        later=np.full(entries + BELOW, NEVER),
        open=np.empty((entries, OPEN_WIDTH), dtype=np.int64),
    )


def entries_at_most(arrays: Arrays) -> int:
    """Returns how many entries running and open jobs never exceed, and one."""
    return int(min(arrays.owned.sum(axis=1).max(), arrays.processors.sum())) + 1


@native("passes_advance")
def advance(
    arrays: Arrays,
    coalitions: Bools,
    time: int,
    before: Ints,
    before_at: Ints,
    room: Room,
    after: Ints,
    after_at: Ints,
    values: Ints,
) -> None:
    """Values coalitions at a time, and brings their states as far as nothing is guessed.

    Args:
        arrays: the game.
        coalitions: bool[c, k], the members of each.
        time: the second at which they are valued.
        before: states to go on from, one behind the other.
        before_at: int64[c + 1], where each begins and ends; one of no length is that of a
            coalition of which nothing is known.
        room: to work in.
        after: the states that were reached, one behind the other.
        after_at: int64[c + 1], where each begins and ends.
        values: int64[c, 3 or 4], value, parts and processors as in `first_come.values_of`, without
            a horizon, and the value's high limb if it has two.
    """
