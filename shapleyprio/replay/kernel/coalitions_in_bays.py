"""Ref and Rand where jobs only get processors of some bays; see `lattice` and `sampling`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from shapleyprio.replay.compiled import kernel
from shapleyprio.replay.kernel.bay_state import ConfinedWorld
from shapleyprio.replay.kernel.codes import FIRST_COME, KEYED
from shapleyprio.replay.kernel.engine import any_of
from shapleyprio.replay.kernel.horizon import has_room, with_more_room
from shapleyprio.replay.kernel.in_bays import advance_confined
from shapleyprio.replay.kernel.keys import Ints
from shapleyprio.replay.kernel.lattice import value_before
from shapleyprio.replay.kernel.notes import begin_block, lacks_room, open_list
from shapleyprio.replay.kernel.sampling import value_sampled
from shapleyprio.replay.kernel.state import pieces_of


def run_coalitions(confined: ConfinedWorld, weights: Ints, length: int) -> Iterator[int]:
    """Brings all coalitions to the end of the window, in blocks.

    Args:
        confined: with keys for Ref or for Rand.
        weights: of Rand's coalitions, as `sampling.weights_of` has them; empty for Ref.
        length: of the window in seconds.

    Yields:
        0 when everything is compiled, then the second that was reached, now and then.
    """
    seconds = confined.world.keys.rows.shape[1]
    run_blocks(confined, weights, 0, 0, length)
    yield 0
    for first, last in pairwise((0, *pieces_of(-(-length // seconds)))):
        block_reached = first
        while block_reached < last:
            block_reached = run_blocks(confined, weights, block_reached, last, length)
            if block_reached < last:
                more = with_more_room(confined.world.state, seconds)
                confined = confined._replace(world=confined.world._replace(state=more))
        yield min(last * seconds, length)


@kernel
def run_blocks(confined: ConfinedWorld, weights: Ints, first: int, last: int, length: int) -> int:
    """Brings the coalitions through the blocks from `first` to before `last`.

    Returns:
        The block that was reached: an earlier one than `last` where the past needs more room.
    """
    state, keys = confined.world.state, confined.world.keys
    seconds, sampled = keys.rows.shape[1], len(weights)
    for block in range(first, last):
        if not has_room(state, seconds):
            return block
        until = min((block + 1) * seconds, length)
        begin_block(keys, block * seconds)
        for c in range(any_of(sampled == 0), len(state.free)):
            if lacks_room(keys, c):
                value_before(state, keys, c)
                keys.notes.end[0] = 0
            policy = any_of(FIRST_COME) if c < sampled else any_of(KEYED)
            if not advance_confined(policy, confined, c, until):
                if sampled != 0:
                    value_sampled(state, keys, weights)
                    keys.begin[1] = 1
                else:
                    value_before(state, keys, c)
                advance_confined(policy, confined, c, until)
            open_list(state, keys, c)
    return last
