"""Keeps the schedules of all coalitions up to a moment, and goes on from there in a later game."""

from __future__ import annotations

from copy import deepcopy
from typing import NamedTuple

import numpy as np

from shapleyprio.replay.coalitions.game import Game
from shapleyprio.replay.engine.engine import expect_anew
from shapleyprio.replay.engine.keys import Block, Ints
from shapleyprio.replay.engine.state import (
    ARRIVING,
    DEMAND,
    HEAD,
    NEVER,
    PARTITION,
    BaySchedules,
    Coalitions,
    Jobs,
    World,
)
from shapleyprio.replay.native import packed
from shapleyprio.replay.workloads.bays import COUNT_BITS, OWNER_BITS, PLACE_BITS, Bays
from shapleyprio.replay.workloads.log import UNKNOWN

END_BITS = 39
"""Bits for an end, with the coalition above them; no game ends later (`game.LATEST_END`)."""


class Reached(NamedTuple):
    """The coalitions' schedules, each before a moment up to which it is certain.

    Attributes:
        seconds: int64[c], of the window, at which a block begins.
        block: of the keys by which coalitions decided.
        game: whose schedules they are.
        jobs: of the game.
        state: of the coalitions, without room for running jobs.
        running: int64[n, 2], the running jobs of all coalitions as `Coalitions.ends` has them.
        bays: what coalitions have in bays, if jobs are kept to some.
        vain_until: length of a window from which on more may be certain, unless a job has ended.
    """

    seconds: Ints
    block: Block
    game: Game
    jobs: Jobs
    state: Coalitions
    running: Ints
    bays: BaySchedules
    vain_until: int = 0


def reached(seconds: Ints, block: Block, game: Game, world: World) -> Reached:
    """Returns a copy of the schedules of a world, of which each has come to its second."""
    state, nothing = world.state, np.empty(0, dtype=np.int64)
    return Reached(
        seconds=seconds,
        block=block,
        game=game,
        jobs=world.jobs,
        state=deepcopy(state._replace(ends=nothing, expected=nothing)),
        running=state.ends.reshape(-1, 2)[_places(state)],
        bays=deepcopy(world.bays),
    )


class Bounds(NamedTuple):
    """Moments before which no schedule depends on a guess: surely, and if none says it does."""

    surely: int
    at_most: int


def bounds_of(jobs: Jobs, limit: Ints) -> Bounds:
    """Returns how far schedules of coalitions may be certain.

    A job that is started at its release is the first whose processing time runs out of what is
    certain of it; how many of them start later, the schedules themselves say (`guessing`). What may
    pass another job depends on a guess as soon as one is released that has no time limit.

    Args:
        jobs: of a game.
        limit: int64[jobs], their time limits; UNKNOWN where there is none.
    """
    guessed = jobs.certain < jobs.processing_time
    surely = int((jobs.release + jobs.certain)[guessed].min(initial=NEVER))
    if jobs.backfill[0]:
        guessed &= limit == UNKNOWN
        at_most = int(jobs.release[guessed].min(initial=NEVER))
        return Bounds(min(surely, at_most), at_most)
    return Bounds(surely, NEVER)


def holds(before: Reached, game: Game, jobs: Jobs, block: Block, length: int) -> bool:
    """Returns whether the schedules before those moments are those of a later game as well.

    They depend on no guess, so it does not matter where only those have changed. No job ends before
    its release and processing time are over, whoever started it.

    Args:
        before: what was reached.
        game: the later one.
        jobs: of the later one.
        block: of its keys.
        length: of its window in seconds.
    """
    second, old_jobs = int(before.seconds.max()), before.jobs
    same_block = before.block.seconds == block.seconds and before.block.wide == block.wide
    if not same_block or second > length or not _same_rules(before.game, game, second):
        return False
    old, new = old_jobs.release < second, jobs.release < second
    if np.count_nonzero(old) != np.count_nonzero(new):
        return False
    same = old_jobs.organization[old] == jobs.organization[new]
    same &= old_jobs.release[old] == jobs.release[new]
    same &= old_jobs.width[old] == jobs.width[new]
    if jobs.backfill[0]:
        same &= old_jobs.estimate[old] == jobs.estimate[new]
    was, lasts = old_jobs.processing_time[old], jobs.processing_time[new]
    was_certain, certain = old_jobs.certain[old], jobs.certain[new]
    as_before = (certain >= was_certain) & ((was == lasts) | (was > was_certain))
    same &= as_before | (jobs.release[new] + np.minimum(was, certain) >= second)
    return bool(same.all())


def most_of(game: Game) -> Ints:
    """Returns the most processors that each organization ever has in each bay: int64[bays, k]."""
    most: Ints = game.by_bay.max(axis=0)
    return most


def resumed(before: Reached, fresh: World) -> World:
    """Returns the schedules that were reached, with the jobs of a later game.

    Args:
        before: schedules that hold there.
        fresh: the later game's world, in which nothing has happened yet.
    """
    jobs, confined = fresh.jobs, len(fresh.bays.reach) > 0
    state = deepcopy(before.state)
    state = state._replace(ends=fresh.state.ends, expected=fresh.state.expected)
    shift = (jobs.first - before.jobs.first)[:-1]
    state.head[:] += shift
    passed = np.searchsorted(jobs.arrival, state.now, side="right")
    state.arrived[:] = np.minimum(state.arrived, passed)
    bits = COUNT_BITS + (PLACE_BITS if confined else OWNER_BITS)
    ends, what = before.running.T
    job = what >> bits
    moved = shift[before.jobs.organization[job]]
    ends = ends + jobs.processing_time[job + moved] - before.jobs.processing_time[job]
    coalition = np.repeat(np.arange(len(state.running)), state.running)
    order = np.argsort((coalition << END_BITS) + ends)  # what is in order is a heap
    every, places = state.ends.reshape(-1, 2), _places(state)
    every[places, 0] = ends[order]
    every[places, 1] = (what + (moved << bits))[order]
    start, job = ends - jobs.processing_time[job + moved], job + moved
    guessed = jobs.certain[job] < jobs.processing_time[job]
    state.guessing[:] = NEVER
    np.minimum.at(state.guessing, coalition[guessed], (start + jobs.certain[job])[guessed])
    busy = state.running > 0
    state.next_end[busy] = every[state.heap[:-1][busy], 0]
    bays = fresh.bays
    if confined:
        bays = _resumed_in_bays(before.bays, bays, jobs, state.arrived, shift)
    found = packed(fresh._replace(state=state, bays=bays))
    expect_anew(found)
    return found


def guessing(world: World, jobs: Jobs) -> World:
    """Returns schedules that go on where they stopped, since what follows is a guess.

    Args:
        world: of schedules that are certain.
        jobs: of the same game, as they are expected to be.
    """
    world.state.guessing[:] = NEVER
    return packed(world._replace(jobs=jobs))


def _resumed_in_bays(
    before: BaySchedules, fresh: BaySchedules, jobs: Jobs, arrived: Ints, shift: Ints
) -> BaySchedules:
    """Returns what coalitions had in bays, with the jobs of a later game.

    A queue of which nothing waits goes on with the first job that has not arrived: when it had come
    to its end, there was none yet.
    """
    bays = deepcopy(before)._replace(jobs=fresh.jobs)
    partitions, jobs_there = len(bays.reach), len(jobs.release)
    queues = np.arange(bays.queues.shape[1])
    arrival = np.empty(jobs_there, dtype=np.int64)
    arrival[bays.jobs[:, ARRIVING]] = np.arange(jobs_there)
    queue_of = jobs.organization * partitions + bays.jobs[:, PARTITION]
    key = queue_of * (jobs_there + 1) + arrival
    order = np.argsort(key)
    to_come = np.searchsorted(key[order], queues * (jobs_there + 1) + arrived[:, None])
    is_last = to_come == np.searchsorted(queue_of[order], queues, side="right")
    following = np.where(is_last, -1, np.append(order, -1)[to_come])
    heads = bays.queues[:, :, HEAD]
    waits = bays.queues[:, :, DEMAND] != 0
    heads[:] = np.where(waits, heads + shift[queues // partitions], following)
    return bays


def _places(state: Coalitions) -> Ints:
    """Returns where the running jobs of all coalitions stand in the heaps, one after the other."""
    opening = np.cumsum(state.running) - state.running
    first = np.repeat(state.heap[:-1] - opening, state.running)
    places: Ints = first + np.arange(len(first))
    return places


def _same_rules(old: Game, new: Game, second: int) -> bool:
    """Returns whether before that second the same may start, on the same processors."""
    until = max(second, 1) + int(new.since[0])
    was, now = (int(np.searchsorted(game.since, until)) for game in (old, new))
    return (
        (old.wide, old.backfill) == (new.wide, new.backfill)
        and np.array_equal(most_of(old), most_of(new))
        and np.array_equal(old.since[:was], new.since[:now])
        and np.array_equal(old.by_bay[:was], new.by_bay[:now])
        and _same_bays(old.bays, new.bays)
    )


def _same_bays(old: Bays | None, new: Bays | None) -> bool:
    """Returns whether partitions have the same bays."""
    if old is None or new is None:
        return old is new
    return np.array_equal(old.reach, new.reach)
