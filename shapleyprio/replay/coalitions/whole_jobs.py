"""Values of coalitions that start whole jobs, or those of partitions, first come, first served.

Behind a job that does not fit the backfilling of the game starts others. For jobs that are cut and
may run anywhere `first_come` does the same in one pass without an engine.
"""

from __future__ import annotations

from shapleyprio.replay.coalitions.game import Bools, Game
from shapleyprio.replay.coalitions.schedules import Run, Saturating, Way
from shapleyprio.replay.engine.codes import FIRST_COME
from shapleyprio.replay.engine.engine import EVERY_ARRIVAL, advance
from shapleyprio.replay.engine.keys import Block, Ints, Keys, no_keys
from shapleyprio.replay.engine.limits import check_range
from shapleyprio.replay.engine.state import World
from shapleyprio.replay.workloads.workload import Workload

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
            Way(_block, _keys, _start, together=False)
        )
        self._batches[key] = batch
        if len(self._batches) > MOST_BATCHES:
            del self._batches[next(iter(self._batches))]
        return batch.values(game, coalitions)


def _block(workload: Workload) -> Block:
    return Block(1, check_range(workload))


def _keys(_workload: Workload, _block: Block) -> Keys:
    return no_keys()


def _start(world: World, _length: int) -> Run:
    """Returns what brings all coalitions forward, each serving the earliest release."""

    def run(_first: int, last: int, until: int) -> None:
        advance(FIRST_COME, world, 0, len(world.state.free), EVERY_ARRIVAL, min(last, until))

    return run


def can_pass(game: Game) -> bool:
    """Returns whether one pass over the jobs, `first_come`, values the coalitions of a game."""
    return game.wide == "expand" and game.bays is None
