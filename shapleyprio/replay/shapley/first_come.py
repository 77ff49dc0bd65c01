"""Values of coalitions whose jobs start first come, first served: one pass over the jobs each.

As long as nothing starts or ends, a value is a quadratic polynomial in time. So a pass gives three
numbers: the value at the game's end, its rate and its acceleration.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.running import pop, push
from shapleyprio.replay.kernel.state import NEVER, Ints
from shapleyprio.replay.shapley.game import Bools, Game

PER_CALL = 16
"""Coalitions valued by one call, so that cores share the work evenly and Ctrl-C is heard."""


def values_of(game: Game, coalitions: Bools, *, cores: int = 1) -> Ints:
    """Returns the exact v(C) of coalitions at the game's end, and how it goes on.

    Args:
        game: jobs and processors.
        coalitions: bool[c, k], the members of each.
        cores: to compute on; the values do not depend on it.

    Returns:
        int64[c, 3]: the value in part-seconds, the completed parts that gain worth, and the
        processors at work (with a horizon, less those whose parts reach it); d seconds later the
        value is value + d·parts + d(d+1)/2·processors if nothing starts or ends.
    """
    values = np.zeros((len(coalitions), 3), dtype=np.int64)
    room = int(game.owned.sum(axis=1).max()) + 1
    horizon = NEVER if game.horizon is None else game.horizon
    arrays = _Arrays(
        game.organization,
        game.release,
        game.processing_time,
        game.processors,
        game.since,
        game.owned,
    )

    def run(first: int) -> None:
        part = slice(first, first + PER_CALL)
        heap = np.empty((room, 2), dtype=np.int64)
        _value(arrays, coalitions[part], game.until, horizon, heap, values[part])

    starts = range(0, len(coalitions), PER_CALL)
    if cores == 1:
        for first in starts:
            run(first)
    else:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(run, starts))
    return values


class _Arrays(NamedTuple):
    """Jobs and processors as in `Game`, since compiled functions take named tuples."""

    organization: Ints
    release: Ints
    processing_time: Ints
    processors: Ints
    since: Ints
    owned: Ints


@kernel
def _value(  # noqa: C901  # one pass, in the order of time
    arrays: _Arrays,
    coalitions: Bools,
    until: int,
    horizon: int,
    heap: Ints,
    values: Ints,
) -> None:
    for c in range(len(coalitions)):
        members = coalitions[c]
        free, change, running = 0, 0, 0
        worth, parts, working = 0, 0, 0
        now = arrays.since[0]
        for job in range(len(arrays.release)):
            if not members[arrays.organization[job]]:
                continue
            now = max(now, arrays.release[job])
            left = arrays.processors[job]
            while now <= until:
                while running > 0 and heap[0, 0] <= now:
                    free += heap[0, 1]
                    pop(heap, 0, running)
                    running -= 1
                while change < len(arrays.since) and arrays.since[change] <= now:
                    free += _gained(arrays.owned, change, members)
                    change += 1
                if free > 0:
                    start = min(free, left)
                    end = now + arrays.processing_time[job]
                    worth += start * (_worth(now, end, until) - _worth(now, end, until - horizon))
                    parts += start * (_parts(now, end, until) - _parts(now, end, until - horizon))
                    working += start * (_works(now, end, until) - _works(now, end, until - horizon))
                    push(heap, 0, running, end, start)
                    running += 1
                    free -= start
                    left -= start
                    if left == 0:
                        break
                now = heap[0, 0] if running > 0 else NEVER
                if change < len(arrays.since):
                    now = min(now, arrays.since[change])
            if now > until:
                break
        values[c, 0], values[c, 1], values[c, 2] = worth, parts, working


@inlined
def _gained(owned: Ints, change: int, members: Bools) -> int:
    """Returns how many more processors the members have from a change on."""
    gained = 0
    for u in range(owned.shape[1]):
        if members[u]:
            gained += owned[change, u]
            if change > 0:
                gained -= owned[change - 1, u]
    return gained


@inlined
def _worth(begin: int, end: int, until: int) -> int:
    """Returns the worth of one processor's work (SPAA 2013, Eq. 3)."""
    return _triangular(until - begin) - _triangular(until - end)


@inlined
def _triangular(n: int) -> int:
    return (n * (n + 1)) >> 1 if n > 0 else 0


@inlined
def _parts(begin: int, end: int, until: int) -> int:
    return max(until - begin, 0) - max(until - end, 0)


@inlined
def _works(begin: int, end: int, until: int) -> int:
    return int(begin <= until < end)
