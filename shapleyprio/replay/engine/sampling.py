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

from shapleyprio.replay.engine.keys import Block, Ints, Keys, keys_of
from shapleyprio.replay.engine.lattice import with_more_room
from shapleyprio.replay.engine.state import World, pieces_of
from shapleyprio.replay.native import native, packed


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
        The second that was reached, now and then.
    """
    world, seconds = packed(world), world.keys.rows.shape[1]
    for first, last in pairwise((0, *pieces_of(-(-length // seconds)))):
        block_reached = first
        while block_reached < last:
            block_reached = run_blocks(world, weights, block_reached, last, length)
            if block_reached < last:
                world = packed(world._replace(state=with_more_room(world.state, seconds)))
        yield min(last * seconds, length)


@native("sampling_run_blocks")
def run_blocks(world: World, weights: Ints, first: int, last: int, length: int) -> int:
    """Brings the sampled coalitions and the consortium through blocks `first` to before `last`.

    Returns:
        The block that was reached: an earlier one than `last` where the past needs more room.
    """
