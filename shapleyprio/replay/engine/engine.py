"""Schedules of coalitions, second by second; the functions are in C, in `replay.native`."""

from __future__ import annotations

from collections.abc import Iterator

from shapleyprio.replay.engine.state import World, pieces_of
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
