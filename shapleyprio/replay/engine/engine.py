"""Schedules of coalitions, second by second, and their worth; the functions are in C (`native`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shapleyprio.fairness.worth import Moments
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.state import Coalitions, World, pieces_of
from shapleyprio.replay.native import native, packed

EVERY_ARRIVAL = -1
"""Jobs of any organization may arrive."""


def run(policy: int, world: World, length: int) -> Iterator[int]:
    """Brings the first coalition to the end of the window.

    Yields:
        The second that was reached, now and then.
    """
    world = packed(world)
    for until in pieces_of(length):
        advance_first(policy, world, until)
        yield until


def advance_first(policy: int, world: World, until: int) -> bool:
    """Brings the first coalition to the last moment before `until`, as `advance` does."""
    return advance(policy, world, 0, 1, EVERY_ARRIVAL, until) == 1


@native("starting_expect_anew")
def expect_anew(world: World) -> None:
    """Puts running jobs in order of their expected ends, after estimates of them have changed."""


@native("engine_advance")
def advance(policy: int, world: World, first: int, last: int, arriving: int, until: int) -> int:
    """Brings coalitions `first` to before `last` to their last moments before `until`.

    Args:
        policy: by which they choose.
        world: all that there is.
        first: number of the first coalition.
        last: number of the one behind the last.
        arriving: bit u is set if jobs of organization u may arrive; for coalitions of a lattice.
        until: second of the window.

    Returns:
        `last`, or the coalition that stopped: at a moment at which a choice needs keys that are
        not there yet, or because there is no room to note what it will do.
    """


def values_at(state: Coalitions, t: int) -> Ints:
    """Returns v(c, t) of all coalitions, for a t at or after everything that happened.

    Returns:
        int64[c], or Python's integers (an array of objects) if they may exceed 63 bits.
    """
    limbs = np.zeros((len(state.free), 2), dtype=np.int64)
    _write(state, t, limbs)
    wide = state.total.shape[1] == 4
    return whole_numbers(limbs[:, 1], limbs[:, 0]) if wide else limbs[:, 0]


def whole_numbers(high: Ints, low: Ints) -> Ints:
    """Returns numbers of two limbs as Python's integers, in an array of objects."""
    whole: Ints = (high.astype(object) << 64) + low.astype(np.uint64).astype(object)
    return whole


def exact_moments(row: Ints) -> Moments:
    """Returns moments of the engine as those of `shapleyprio.fairness.worth`."""
    processors, first, halved, *high = row.tolist()
    if high:
        halved = (high[0] << 64) + halved % 2**64
    return Moments(processors, first, 2 * halved + first)


def older_moments(state: Coalitions) -> Ints:
    """Returns moments of what is a horizon old in the first coalition, for `exact_worths`."""
    past = state.past
    return past.utility[:1].reshape(-1, past.total.shape[1])


def exact_worths(moments: Ints, older: Ints, t: int) -> list[int]:
    """Returns worths at t, for a t at or after everything that happened.

    Args:
        moments: [n, 3 or 4], of events.
        older: [n, 3 or 4], of those a horizon old (`state.PastEvents`); [0, 3 or 4] without one.
        t: second of the window.
    """
    worths = [exact_moments(row).worth(t) for row in moments]
    if len(older) == 0:
        return worths
    wraps = 2 ** (64 * (moments.shape[1] - 2))
    return [
        (worth - exact_moments(row).worth(t)) % wraps
        for worth, row in zip(worths, older, strict=True)
    ]


@native("values_write")
def _write(state: Coalitions, t: int, limbs: Ints) -> None:
    """Writes v(c, t) of all coalitions to int64[c, 2], the low limb and the high one."""
