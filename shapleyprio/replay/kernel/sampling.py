"""Rand: contributions estimated from the coalitions of some random orderings (SPAA 2013, Fig. 6).

In an ordering every organization joins those before it, and what it adds to their value is a
draw of its contribution. The estimate is the mean over N orderings, so that N·φ̂ is an integer:
a sum of values, each with a whole weight. The sampled coalitions start jobs in the order of
release; only the consortium's schedule, the last row of the state, chooses by φ̂ − ψ.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from shapleyprio.replay.compiled import kernel
from shapleyprio.replay.kernel.codes import FIRST_COME, KEYED
from shapleyprio.replay.kernel.engine import EVERY_ARRIVAL, advance, any_of
from shapleyprio.replay.kernel.horizon import has_room, with_more_room
from shapleyprio.replay.kernel.keys import Block, Ints, Keys, keys_of
from shapleyprio.replay.kernel.notes import begin_block
from shapleyprio.replay.kernel.state import Coalitions, World, pieces_of
from shapleyprio.replay.kernel.values import add_value, clear_row, gaining, moments_worth
from shapleyprio.replay.kernel.wide import is_wide


def sampled_keys(sampled: int, organizations: int, orderings: int, block: Block) -> Keys:
    """Makes rows for −N·φ̂ of every organization."""
    keys = keys_of(
        rows=organizations,
        tracked=sampled,
        lists=sampled,
        coalitions=sampled + 1,
        block=block,
        lattice=False,
    )
    keys.factor[:] = orderings
    return keys


def weights_of(orderings: Ints) -> tuple[Ints, Ints]:
    """Returns the coalitions of some orderings, and how their values add up to N·φ̂.

    Args:
        orderings: [N, k], each a permutation of the organizations.

    Returns:
        Members of each coalition as bits, [c]; weights [c, k]: how often u was the last to join
        that coalition less how often u joined it next.
    """
    joined = np.cumsum(1 << orderings, axis=1)
    before = np.concatenate((np.zeros((len(orderings), 1), np.int64), joined[:, :-1]), axis=1)
    members, place = np.unique(np.concatenate((joined, before)), return_inverse=True)
    weights = np.zeros((len(members), orderings.shape[1]), dtype=np.int64)
    after, earlier = np.split(place.reshape(-1), 2)
    np.add.at(weights, (after, orderings.reshape(-1)), 1)
    np.add.at(weights, (earlier, orderings.reshape(-1)), -1)
    return members[1:], weights[1:]


def run(world: World, weights: Ints, length: int) -> Iterator[int]:
    """Brings all schedules to the end of the window.

    Yields:
        0 when everything is compiled, then the second that was reached, now and then.
    """
    seconds = world.keys.rows.shape[1]
    run_blocks(world, weights, 0, 0, length)
    yield 0
    for first, last in pairwise((0, *pieces_of(-(-length // seconds)))):
        block_reached = first
        while block_reached < last:
            block_reached = run_blocks(world, weights, block_reached, last, length)
            if block_reached < last:
                world = world._replace(state=with_more_room(world.state, seconds))
        yield min(last * seconds, length)


@kernel
def run_blocks(world: World, weights: Ints, first: int, last: int, length: int) -> int:
    """Brings the sampled coalitions and the consortium through some blocks of seconds.

    Returns:
        The block that was reached: an earlier one than `last` where the past needs more room.
    """
    state, keys = world.state, world.keys
    seconds = keys.rows.shape[1]
    everybody = len(weights)
    for block in range(first, last):
        if not has_room(state, seconds):
            return block
        until = min((block + 1) * seconds, length)
        begin_block(keys, block * seconds)
        arriving, behind = any_of(EVERY_ARRIVAL), everybody + 1
        advance(any_of(FIRST_COME), world, any_of(0), everybody, arriving, until)
        if advance(any_of(KEYED), world, everybody, behind, arriving, until) != behind:
            value_sampled(state, keys, weights)
            keys.begin[1] = 1
            advance(any_of(KEYED), world, everybody, behind, arriving, until)
    return last


@kernel
def value_sampled(state: Coalitions, keys: Keys, weights: Ints) -> None:
    """Makes the rows: −N·φ̂ of every organization."""
    for u in range(weights.shape[1]):
        clear_row(keys, u)
        if is_wide(state):
            for c in range(len(weights)):
                if weights[c, u] != 0:
                    add_value(state, keys, c, -weights[c, u], u)
        else:
            _sum_values(keys, weights, u)


@kernel
def _sum_values(keys: Keys, weights: Ints, u: int) -> None:
    """Makes a row of one limb from what changes in it, for most seconds nothing does.

    From one second to the next a value grows by the parts completed by then, and those by the
    processors that are busy in between.
    """
    begin, target = keys.begin[0], keys.rows[u]
    entries, until = keys.notes.entries, keys.begin[0] + len(target)
    value, done, busy = 0, 0, 0
    for c in range(len(weights)):
        factor, place = -weights[c, u], keys.notes.first[c]
        if factor == 0:
            continue
        its_value, its_done = moments_worth(entries, place, begin), gaining(entries, place, begin)
        keys.base[u] += float(factor) * float(its_value)
        keys.slope[u] += float(factor) * float(its_done)
        value += factor * its_value
        done += factor * its_done
        busy += factor * entries[place, 1]
        while entries[place + 1, 0] < until:
            place += 1
            more = entries[place, 1] - entries[place - 1, 1]
            target[entries[place, 0] - begin] += factor * more
    for second in range(len(target)):
        busy += target[second]
        target[second] = value
        done += busy
        value += done
