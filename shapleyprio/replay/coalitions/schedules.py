"""Schedules of coalitions, simulated once as far as they are certain: what coalitions are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shapleyprio.replay.coalitions.game import Bools, Game
from shapleyprio.replay.coalitions.resuming import (
    Bounds,
    Reached,
    bounds_of,
    guessing,
    holds,
    most_of,
    reached,
    resumed,
)
from shapleyprio.replay.engine.beginning import NOBODY, coalitions_of, jobs_of, record_of, world_of
from shapleyprio.replay.engine.engine import values_at
from shapleyprio.replay.engine.keys import Block, Ints, Keys
from shapleyprio.replay.engine.state import FREE, OPEN, Jobs, World
from shapleyprio.replay.native import packed
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Window, Workload

FIRST_STEP = 1024
"""Seconds by which schedules are tried to go on; twice as many as long as nothing is guessed."""

Run = Callable[[int, int, int], object]
"""Brings all coalitions through the blocks from a first to before a last one, and no further than
a second of the window."""


class Way(NamedTuple):
    """How coalitions choose whom to serve.

    Attributes:
        block: from a workload to the seconds of a block, at whose begins a schedule can be gone on
            with, and whether values need two limbs.
        keys: from a workload and a block to the keys by which coalitions choose.
        start: from a world and the window's length in seconds to what brings it forward.
        together: whether coalitions need each other's values, and so go on together. Blocks of
            those that do not are of one second.
    """

    block: Callable[[Workload], Block]
    keys: Callable[[Workload, Block], Keys]
    start: Callable[[World, int], Run]
    together: bool


class Schedules:
    """Schedules of coalitions up to a moment that moves on from game to game.

    Args:
        way: how they choose whom to serve.
    """

    def __init__(self, way: Way) -> None:
        self._way = way
        self._reached: Reached | None = None

    def values(self, game: Game, coalitions: Bools, time: int) -> Ints:
        """Returns value, parts and processors at work of coalitions, without a horizon.

        Args:
            game: jobs and processors.
            coalitions: bool[c, k], the members of each; the same as in the game before.
            time: the second at which they are valued.

        Returns:
            int64[c, 3], columns as in `first_come.values_of`.
        """
        workload = workload_of_game(game, time)
        certain = (game.processing_time if game.certain is None else game.certain)[workload.job]
        life = _Life(self._way, game, workload, coalitions, certain)
        self._reached, world = life.as_far_as_certain(self._reached)
        return life.values_at_end(self._reached.seconds, world)

    @property
    def certain(self) -> int:
        """The second of the last game before which nothing in any schedule is a guess."""
        assert self._reached is not None
        return int(self._reached.game.since[0] + self._reached.seconds.min())


class _Life:
    """What coalitions do in one game, block by block."""

    def __init__(
        self, way: Way, game: Game, workload: Workload, coalitions: Bools, certain: Ints
    ) -> None:
        self._way, self._game, self._workload = way, game, workload
        self._coalitions = coalitions
        self._block = way.block(workload)
        self._jobs = jobs_of(workload)
        self._certain = certain
        self._keys = way.keys(workload, self._block)
        self._length = workload.window.length
        self._blocks = -(-self._length // self._block.seconds)

    def as_far_as_certain(self, before: Reached | None) -> tuple[Reached, World]:
        """Returns the schedules up to where each begins to depend on a guess, about.

        Args:
            before: where the schedules of an earlier game were; None if there was none.

        Returns:
            What to keep of them, and a world that has come there.
        """
        jobs = self._jobs._replace(certain=self._certain)
        bounds = bounds_of(jobs, self._workload.limit)
        if before is not None and holds(before, self._game, jobs, self._block, self._length):
            if self._is_vain(before, bounds):
                return before, resumed(before, self._fresh(self._jobs))
            seconds, world = before.seconds, resumed(before, self._fresh(jobs))
        else:
            seconds = np.zeros(len(self._coalitions), dtype=np.int64)
            world = packed(self._fresh(jobs))
        if self._way.together:
            found = self._together(world, jobs, int(seconds[0]) // self._block.seconds, bounds)
            return found, resumed(found, self._fresh(self._jobs))
        until = min(bounds.at_most, self._length)
        self._run(world, seconds, until)
        # what happens at one second is certain if that which led to it was
        certain = np.maximum(world.state.guessing, world.state.now + 1)
        seconds = np.maximum(seconds, np.minimum(certain, until))
        return reached(seconds, self._block, self._game, world), guessing(world, self._jobs)

    def _is_vain(self, before: Reached, bounds: Bounds) -> bool:
        """Returns whether no later block can be certain, as far as one knows without a try."""
        following = int(before.seconds[0]) + self._block.seconds
        possible = bounds.surely if self._length < before.vain_until else bounds.at_most
        return self._way.together and following > min(possible, self._length)

    def _together(self, world: World, jobs: Jobs, first: int, bounds: Bounds) -> Reached:
        """Returns the schedules up to the last block that depends on no guess in any of them."""
        seconds = self._block.seconds
        surely = max(min(bounds.surely, self._length) // seconds, first)
        last = max(min(bounds.at_most, self._length) // seconds, surely)
        self._run(world, self._begins(first), surely * seconds)
        found = self._reached(world, surely)
        shortest = step = max(FIRST_STEP // seconds, 1)
        first = surely
        while first < last:
            following = min(first + step, last)
            self._run(world, self._begins(first), following * seconds)
            guess = int(world.state.guessing.min())
            if guess >= following * seconds:
                found = self._reached(world, following)
                first, step = following, 2 * step
            elif step > shortest:
                world, step = resumed(found, self._fresh(jobs)), shortest
            else:
                # what is certain of a job grows as the window does, unless it ends
                return found._replace(vain_until=self._length + following * seconds - guess)
        return found

    def values_at_end(self, seconds: Ints, world: World) -> Ints:
        """Returns value, parts and processors at the window's end, of schedules that go on."""
        last = self._length - 1
        self._run(world, seconds, self._length)
        values, later = values_at(world.state, last), values_at(world.state, last + 1)
        processors = world.state.total[:, 0]
        return np.stack((values, later - values - processors, processors), axis=1)

    def _fresh(self, jobs: Jobs) -> World:
        """Makes the coalitions before anything has happened."""
        workload, block = self._workload, self._block
        state = coalitions_of(jobs, workload.owned, self._coalitions, wide=block.wide)
        record = record_of(workload, jobs, NOBODY, 0, wide=block.wide)
        world = world_of(workload, jobs, state, self._keys, record)
        _give(world, self._game.by_bay[0] - most_of(self._game))
        return world

    def _begins(self, block: int) -> Ints:
        """Returns the second at which a block begins, for each coalition."""
        return np.full(len(self._coalitions), block * self._block.seconds, dtype=np.int64)

    def _reached(self, world: World, block: int) -> Reached:
        return reached(self._begins(block), self._block, self._game, world)

    def _run(self, world: World, begins: Ints, end: int) -> None:
        """Brings the coalitions, each from where it is, to the last moment before a second.

        In between it gives and takes processors: the block of a change is gone through up to the
        second of the change, and again from there.
        """
        game, seconds = self._game, self._block.seconds
        run = self._way.start(world, self._length)
        first, last = int(begins.min()) // seconds, -(-end // seconds)
        changes = game.since - game.since[0]
        for change in range(1, len(changes)):
            second = int(changes[change])
            if first * seconds <= second < end:
                run(first, -(-second // seconds), second)
                there = (begins <= second) & (second < world.state.guessing)
                gained = game.by_bay[change] - game.by_bay[change - 1]
                _change(world, second, gained, there)
                first = second // seconds
        run(first, last, self._length)


class Saturating:
    """Values coalitions of a game that grows, by its horizon.

    The values do not depend on what was valued before. With a horizon parts saturate in the
    values, but not in those that coalitions may choose by: all but their last choices are the same.

    Args:
        way: how they choose whom to serve.
    """

    def __init__(self, way: Way) -> None:
        self._at_end, self._at_horizon = Schedules(way), Schedules(way)

    def values(self, game: Game, coalitions: Bools) -> Ints:
        """Returns the values of coalitions at the game's end, and how they go on.

        Args:
            game: jobs and processors.
            coalitions: bool[c, k], the members of each; the same as in the game before.

        Returns:
            int64[c, 3], columns as in `first_come.values_of`.
        """
        values = self._at_end.values(game, coalitions, game.until)
        if game.horizon is not None and game.until - game.horizon >= int(game.since[0]):
            older = self._at_horizon.values(game, coalitions, game.until - game.horizon)
            values = values - older
        return values

    @property
    def certain(self) -> int:
        """The second of the last game before which nothing in any schedule is a guess."""
        return self._at_end.certain


def _change(world: World, second: int, gained: Ints, there: Bools) -> None:
    """Gives the members' new processors to coalitions that are at this second: [bays, k], [c].

    Where processors are lost that are at work, fewer than none are free until enough jobs end.
    Whoever has no job that ends now decides because of the change, with what is released now: that
    alone may be no reason to decide.
    """
    state, bays = world.state, world.bays
    _give(world, gained, there)
    free = (bays.partitions[:, :, OPEN] > 0).any(axis=1) if len(bays.reach) else state.free > 0
    deciding = there & free & (state.waiting > 0) & (state.next_end != second)
    state.now[deciding] = second
    state.undecided[deciding] = 1


def _give(world: World, gained: Ints, there: Bools | None = None) -> None:
    """Gives coalitions (those `there`: bool[c]) processors of their members in each bay.

    Args:
        world: of the coalitions.
        gained: int64[bays, k], below 0 where they are taken.
        there: to whom; None for all.
    """
    state, bays = world.state, world.bays
    change = state.takes_part @ gained.T
    if there is not None:
        change *= there[:, None]
    state.processors[:] += change.sum(axis=1)
    state.free[:] += change.sum(axis=1)
    if len(bays.reach):
        bays.bays[:, :, FREE] += change
        bays.partitions[:, :, OPEN] = np.maximum(bays.bays[:, :, FREE], 0) @ bays.reach.T


def workload_of_game(game: Game, time: int) -> Workload:
    """Returns the jobs up to a moment as a workload that begins at 0; `job` is the place in it.

    Its processors are a bound for those that there are.
    """
    begin = int(game.since[0])
    count = int(np.searchsorted(game.release, time, side="right"))
    order = np.argsort(game.organization[:count], kind="stable")
    unknown, most = np.full(count, UNKNOWN, dtype=np.int64), most_of(game)
    return Workload(
        organizations=tuple(map(str, range(game.organizations))),
        owned=most.sum(axis=0),
        window=Window(start=begin, length=time - begin + 1),  # what starts at that moment counts
        job=order,
        organization=game.organization[order].astype(np.int32),
        release=game.release[order] - begin,
        processing_time=game.processing_time[order],
        processors=game.processors[order],
        limit=unknown if game.limit is None else game.limit[order],
        start=unknown,
        position=order,
        wide=game.wide,
        backfill=game.backfill,
        unions=game.unions,
        bays=None if game.bays is None else replace(game.bays.of_jobs(order), owned=most),
    )
