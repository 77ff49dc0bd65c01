"""Values of coalitions that decide as under Ref: each serves whom it owes the most by its own φ.

Closer to the fair schedule than first come, first served, and dearer: a coalition's decisions need
the values of all its subsets, so they cannot be had one by one.
"""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import numpy as np

from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.kernel import lattice
from shapleyprio.replay.kernel.keys import Block, Ints
from shapleyprio.replay.kernel.running import COUNT_BITS, OWNER_BITS
from shapleyprio.replay.kernel.state import (
    NEVER,
    Coalitions,
    Jobs,
    World,
    coalitions_of,
    jobs_of,
    members_of,
    record_of,
)
from shapleyprio.replay.kernel.values import values_at
from shapleyprio.replay.limits import LONGEST_BLOCK, ref_block
from shapleyprio.replay.log import UNKNOWN
from shapleyprio.replay.shapley.game import Game
from shapleyprio.replay.workload import Window, Workload

MOST_STARTS = 2**24
"""Jobs times coalitions up to which coalitions decide: about a second from scratch."""

MOST_CHANGES = 256
"""Changes of processors up to which coalitions decide; each costs some more milliseconds."""

MOST_RUNNING = 2**21
"""Copies that may run in all coalitions together, for which there is room (32 MiB)."""

NOT_RECORDED = -1
JOB_SHIFT = OWNER_BITS + COUNT_BITS


def can_decide(game: Game, most_starts: int = MOST_STARTS) -> bool:
    """Returns whether the coalitions of a game may decide by contributions of their own.

    Args:
        game: jobs and processors.
        most_starts: jobs times coalitions that are affordable.
    """
    coalitions = 2**game.organizations
    if len(game.since) > 1 + MOST_CHANGES or len(game.release) * coalitions > most_starts:
        return False
    running = int(_most(game).sum()) * coalitions // 2
    released = len(game.release) > 0 and int(game.release[0]) <= game.until
    if not released or not 0 < running <= MOST_RUNNING:
        return False
    try:
        ref_block(_workload(game, game.until))
    except PolicyError:
        return False
    return True


class DecidingCoalitions:
    """Values all coalitions of a game that grows, and schedules what is certain once.

    The values do not depend on what was valued before. With a horizon parts saturate in the
    values, but not in those that coalitions decide by: all but the last decisions are the same.

    Args:
        longest_block: seconds between moments from which a later game can go on.
    """

    def __init__(self, *, longest_block: int = LONGEST_BLOCK) -> None:
        self._at_end = _Schedules(longest_block)
        self._at_horizon = _Schedules(longest_block)

    def values(self, game: Game) -> Ints:
        """Returns the values of all coalitions at the game's end, and how they go on.

        Args:
            game: one that `can_decide`.

        Returns:
            int64[2^k, 3] by bit mask, columns as in `first_come.values_of`.
        """
        values = self._at_end.values(game, game.until)
        if game.horizon is not None and game.until - game.horizon >= int(game.since[0]):
            values = values - self._at_horizon.values(game, game.until - game.horizon)
        return values


class _Reached(NamedTuple):
    """The coalitions' schedules before a moment, up to which they are certain."""

    second: int
    block: Block
    game: Game
    jobs: Jobs
    state: Coalitions


class _Schedules:
    """Schedules of all coalitions up to a moment that moves on from game to game."""

    def __init__(self, longest_block: int) -> None:
        self._longest_block = longest_block
        self._reached: _Reached | None = None

    def values(self, game: Game, time: int) -> Ints:
        """Returns value, parts and processors at work of all coalitions, without a horizon."""
        workload = _workload(game, time)
        jobs, block = jobs_of(workload), ref_block(workload)
        block = block._replace(seconds=min(block.seconds, self._longest_block))
        k, length = game.organizations, workload.window.length
        certain = _certain(game)[workload.job]
        first, before = 0, self._reached
        if before is not None and _holds(before, game, jobs, block, length):
            first, state = before.second // block.seconds, _resumed(before, jobs)
        else:
            members = members_of(np.arange(2**k), k)
            state = coalitions_of(jobs, _most(game), members, wide=block.wide)
            state.processors[:] = state.free[:] = state.takes_part @ game.owned[0]
        record = record_of(workload, jobs, NOT_RECORDED, 0, wide=block.wide)
        world = World(jobs, state, lattice.lattice_keys(k, block, by_second=True), record)
        seconds = block.seconds
        blocks = -(-length // seconds)
        arriving = lattice.arriving(jobs, blocks, seconds)
        safe = max(min(_unchanging(jobs, certain), length) // seconds, first)
        _run_blocks(world, arriving, game, first, safe, length)
        self._reached = _Reached(
            second=safe * seconds, block=block, game=game, jobs=jobs, state=deepcopy(state)
        )
        _run_blocks(world, arriving, game, safe, blocks, length)
        values, later = values_at(state, length - 1), values_at(state, length)
        processors = state.total[:, 0]
        return np.stack((values, later - values - processors, processors), axis=1)


def _run_blocks(
    world: World, arriving: Ints, game: Game, first: int, last: int, length: int
) -> None:
    """Brings all coalitions through blocks, and gives and takes processors in between.

    The block of a change is gone through up to the second of the change, and again from there.
    """
    seconds = world.keys.rows.shape[1]
    changes = game.since - game.since[0]
    for change in range(1, len(changes)):
        second = int(changes[change])
        if first * seconds <= second < min(last * seconds, length):
            lattice.run_blocks(world, arriving, first, -(-second // seconds), second)
            _change(world, second, game.owned[change] - game.owned[change - 1])
            first = second // seconds
    lattice.run_blocks(world, arriving, first, last, length)


def _change(world: World, second: int, gained: Ints) -> None:
    """Gives the members' new processors to coalitions that have come to this second.

    Where processors are lost that are at work, fewer than none are free until enough jobs end.
    Whoever has no job that ends or is released now decides because of the change alone.
    """
    jobs, state = world.jobs, world.state
    change = state.takes_part @ gained
    state.processors[:] += change
    state.free[:] += change
    released = np.unique(jobs.arrival_of[jobs.arrival == second])
    busy = (state.next_end == second) | state.takes_part[:, released].any(axis=1)
    deciding = (state.free > 0) & (state.waiting > 0) & ~busy
    state.now[deciding] = second
    state.undecided[deciding] = 1


def _most(game: Game) -> Ints:
    """Returns the most processors that each organization ever has: int64[k]."""
    most: Ints = game.owned.max(axis=0)
    return most


def _workload(game: Game, time: int) -> Workload:
    """Returns the jobs up to a moment as a workload that begins at 0; `job` is the place in it.

    Its processors are a bound for those that there are.
    """
    begin = int(game.since[0])
    count = int(np.searchsorted(game.release, time, side="right"))
    order = np.argsort(game.organization[:count], kind="stable")
    unknown = np.full(count, UNKNOWN, dtype=np.int64)
    return Workload(
        organizations=tuple(map(str, range(game.organizations))),
        owned=_most(game),
        window=Window(start=begin, length=time - begin + 1),  # what starts at that moment counts
        job=order,
        organization=game.organization[order].astype(np.int32),
        release=game.release[order] - begin,
        processing_time=game.processing_time[order],
        processors=game.processors[order],
        limit=unknown,
        start=unknown,
        position=order,
    )


def _certain(game: Game) -> Ints:
    return game.processing_time if game.certain is None else game.certain


def _unchanging(jobs: Jobs, certain: Ints) -> int:
    """Returns the moment before which no coalition's schedule depends on a guess.

    A job that is started at its release is the first whose processing time runs out of what is
    certain of it.
    """
    guessed = certain < jobs.processing_time
    return int((jobs.release[guessed] + certain[guessed]).min(initial=NEVER))


def _holds(before: _Reached, game: Game, jobs: Jobs, block: Block, length: int) -> bool:
    """Returns whether the schedules before that moment are those of a later game as well.

    No job ends before its release and processing time are over, whoever started it.
    """
    second, old_jobs = before.second, before.jobs
    same_block = before.block.seconds == block.seconds and before.block.wide == block.wide
    if not same_block or second > length or not _same_processors(before.game, game, second):
        return False
    old, new = old_jobs.release < second, jobs.release < second
    if np.count_nonzero(old) != np.count_nonzero(new):
        return False
    same = old_jobs.organization[old] == jobs.organization[new]
    same &= old_jobs.release[old] == jobs.release[new]
    same &= old_jobs.width[old] == jobs.width[new]
    was, lasts = old_jobs.processing_time[old], jobs.processing_time[new]
    same &= (was == lasts) | (jobs.release[new] + np.minimum(was, lasts) >= second)
    return bool(same.all())


def _same_processors(old: Game, new: Game, second: int) -> bool:
    """Returns whether processors are the same before that second, with the same room for all."""
    until = max(second, 1) + int(new.since[0])
    was, now = (int(np.searchsorted(game.since, until)) for game in (old, new))
    return (
        np.array_equal(_most(old), _most(new))
        and np.array_equal(old.since[:was], new.since[:now])
        and np.array_equal(old.owned[:was], new.owned[:now])
    )


def _resumed(before: _Reached, jobs: Jobs) -> Coalitions:
    """Returns the schedules, with the jobs' places and processing times of a later game."""
    state = deepcopy(before.state)
    shift = (jobs.first - before.jobs.first)[:-1]
    state.head[:] += shift
    passed = np.searchsorted(jobs.arrival, state.now, side="right")
    state.arrived[:] = np.minimum(state.arrived, passed)
    coalition = np.repeat(np.arange(len(state.running)), state.running)
    opening = np.cumsum(state.running) - state.running
    place = np.arange(len(coalition)) - np.repeat(opening - state.heap[:-1], state.running)
    every = state.ends.reshape(-1, 2)
    ends, what = every[place].T
    job = what >> JOB_SHIFT
    moved = shift[before.jobs.organization[job]]
    ends = ends + jobs.processing_time[job + moved] - before.jobs.processing_time[job]
    order = np.lexsort((ends, coalition))  # what is in order is a heap
    every[place, 0] = ends[order]
    every[place, 1] = (what + (moved << JOB_SHIFT))[order]
    busy = state.running > 0
    state.next_end[busy] = every[state.heap[:-1][busy], 0]
    return state
