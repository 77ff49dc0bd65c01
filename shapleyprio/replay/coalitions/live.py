"""The consortium's schedule by φ − ψ, with φ recomputed from what is known at the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from shapleyprio.replay.coalitions.estimate import Estimate
from shapleyprio.replay.engine.codes import KEYED
from shapleyprio.replay.engine.engine import advance_first
from shapleyprio.replay.engine.keys import Keys, wrapped
from shapleyprio.replay.engine.state import Record, World, pieces_of
from shapleyprio.replay.native import packed


def run(
    world: World,
    *,
    contributions: Callable[[Record, int], Estimate],
    length: int,
) -> Iterator[int]:
    """Brings the consortium's schedule to the end of the window.

    Contributions are computed at the first moment at which several organizations compete, and
    hold for as many seconds as the keys have; meanwhile they follow their polynomials.

    Args:
        world: the consortium as its only coalition, with a row of keys for each organization.
        contributions: from the schedule so far and a moment to φ as it is known then.
        length: of the window in seconds.

    Yields:
        The second that was reached, now and then.
    """
    world = packed(world)
    keys, state, record = world.keys, world.state, world.record
    reached = valid_until = 0
    for until in pieces_of(length):
        while reached < until:
            if reached < valid_until:
                keys.begin[1] = 1
                reached = min(until, valid_until)
                advance_first(KEYED, world, reached)
                continue
            keys.begin[1] = 0
            if advance_first(KEYED, world, until):
                reached = until
            else:
                reached = int(state.now[0])
                keys.begin[0] = reached
                valid_until = reached + keys.rows.shape[1]
                _write(keys, contributions(record, reached))
        yield until


def _write(keys: Keys, found: Estimate) -> None:
    """Writes the keys of a block: the least of −φ + ψ, times the denominator, is served first."""
    after = np.arange(keys.rows.shape[1])
    parts = after * (after + 1) // 2
    for u, (value, rate, acceleration) in enumerate(found.numerators):
        if keys.high.shape[1] == 0:
            polynomial = wrapped(value) + wrapped(rate) * after + wrapped(acceleration) * parts
            keys.rows[u] = -polynomial
        else:
            exact = -(value + rate * after.astype(object) + acceleration * parts.astype(object))
            keys.rows[u] = [wrapped(number) for number in exact]
            keys.high[u] = [wrapped(number >> 64) for number in exact]
        keys.base[u], keys.slope[u] = -float(value), -float(rate)
    keys.factor[0] = found.denominator
