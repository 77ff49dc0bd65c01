"""The ways in which coalitions choose that the engine schedules: by their own φ, or first come.

By their own φ they are closer to the fair schedule, and dearer: a coalition's decisions need the
values of all its subsets, so they cannot be computed one by one. First come, first served start
whole jobs, or those of partitions, and behind one that does not fit the backfilling of the game
starts others. For jobs that are cut and may run anywhere `first_come` does the same in one pass
without an engine.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from shapleyprio.replay.coalitions.contributions import all_coalitions
from shapleyprio.replay.coalitions.game import Bools, Game
from shapleyprio.replay.coalitions.resuming import most_of
from shapleyprio.replay.coalitions.schedules import Run, Saturating, Way, workload_of_game
from shapleyprio.replay.engine import lattice
from shapleyprio.replay.engine.codes import FIRST_COME
from shapleyprio.replay.engine.engine import EVERY_ARRIVAL, advance
from shapleyprio.replay.engine.keys import Block, Ints, Keys, no_keys
from shapleyprio.replay.engine.limits import LONGEST_BLOCK, check_range, ref_block
from shapleyprio.replay.engine.state import World
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.workloads.workload import Workload

MOST_STARTS = 2**24
"""Jobs times coalitions up to which coalitions decide: about a second from scratch."""

MOST_CHANGES = 256
"""Changes of processors up to which coalitions decide; each costs some more milliseconds."""

MOST_RUNNING = 2**21
"""Jobs, or copies of them, that may run in all coalitions together: they take 32 MiB."""


def can_decide(game: Game, most_starts: int = MOST_STARTS) -> bool:
    """Returns whether the coalitions of a game may decide by contributions of their own.

    Args:
        game: jobs and processors.
        most_starts: jobs times coalitions that are affordable.
    """
    coalitions = 2**game.organizations
    if len(game.since) > 1 + MOST_CHANGES or len(game.release) * coalitions > most_starts:
        return False
    pieces = len(game.release) if game.wide == "rigid" else int(game.processors.sum())
    running = min(int(most_of(game).sum()), pieces) * coalitions // 2
    released = len(game.release) > 0 and int(game.release[0]) <= game.until
    if not released or not 0 < running <= MOST_RUNNING:
        return False
    try:
        ref_block(workload_of_game(game, game.until))
    except PolicyError:
        return False
    return True


class DecidingCoalitions:
    """Values all coalitions of a game that grows, and schedules what is certain once.

    Args:
        longest_block: seconds between moments from which a later game can go on.
    """

    def __init__(self, *, longest_block: int = LONGEST_BLOCK) -> None:
        self._values = Saturating(
            Way(
                partial(_deciding_block, longest_block),
                _deciding_keys,
                _start_deciding,
                together=True,
            )
        )

    def values(self, game: Game) -> Ints:
        """Returns the values of all coalitions at the game's end, and how they go on.

        Args:
            game: one that `can_decide`.

        Returns:
            int64[2^k, 3] by bit mask, columns as in `first_come.values_of`.
        """
        return self._values.values(game, all_coalitions(game.organizations))

    @property
    def certain(self) -> int:
        """The second of the last game before which nothing in any schedule is a guess."""
        return self._values.certain


def _deciding_block(longest: int, workload: Workload) -> Block:
    block = ref_block(workload)
    return block._replace(seconds=min(block.seconds, longest))


def _deciding_keys(workload: Workload, block: Block) -> Keys:
    k, unions = len(workload.owned), workload.unions
    return lattice.lattice_keys(k, block, unions=unions)


def _start_deciding(world: World, length: int) -> Run:
    """Returns what brings all coalitions through blocks, each deciding by its own φ."""
    seconds, choices = world.keys.rows.shape[1], np.zeros(1, dtype=np.int64)
    arriving = lattice.arriving(world.jobs, -(-length // seconds), seconds)

    def run(first: int, last: int, until: int) -> None:
        lattice.run_blocks(world, arriving, first, last, until, choices)

    return run


MOST_BATCHES = 8
"""Batches of coalitions of which schedules are kept: more than one estimate asks for."""


class WholeJobs:
    """Values batches of coalitions of a game that grows, and schedules what is certain once."""

    def __init__(self) -> None:
        self._batches: dict[bytes, Saturating] = {}

    def values(self, game: Game, coalitions: Bools) -> Ints:
        """Returns what `first_come.values_of` does.

        Args:
            game: jobs and processors.
            coalitions: bool[c, k], the members of each.
        """
        key = coalitions.tobytes()
        batch = self._batches.pop(key, None) or Saturating(
            Way(_second, _without_keys, _start_first_come, together=False)
        )
        self._batches[key] = batch
        if len(self._batches) > MOST_BATCHES:
            del self._batches[next(iter(self._batches))]
        return batch.values(game, coalitions)


def _second(workload: Workload) -> Block:
    return Block(1, check_range(workload))


def _without_keys(_workload: Workload, _second: Block) -> Keys:
    return no_keys()


def _start_first_come(world: World, _length: int) -> Run:
    """Returns what brings all coalitions forward, each serving the earliest release."""

    def run(_first: int, last: int, until: int) -> None:
        advance(FIRST_COME, world, 0, len(world.state.free), EVERY_ARRIVAL, min(last, until))

    return run


def can_pass(game: Game) -> bool:
    """Returns whether one pass over the jobs, `first_come`, values the coalitions of a game."""
    return game.wide == "expand" and game.bays is None
