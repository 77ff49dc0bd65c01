"""One pass over the jobs of a coalition that serves them first come, first served.

A pass comes to a moment after which it needs a processing time that is only a guess. What it found
until then is its state there, and a later pass, which knows more, goes on from it. A state is one
row of whole numbers: those named below, how many jobs of each organization are in it, the heap
of running jobs (see `ends`), and the open ones (organization, number among its jobs,
start, processors), of which nobody knows when they end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.keys import Ints
from shapleyprio.replay.kernel.state import NEVER
from shapleyprio.replay.kernel.wide import minus, plus, product, times
from shapleyprio.replay.shapley.ends import (
    BELOW,
    end_of,
    entry_of,
    pop,
    processors_of,
    push,
)
from shapleyprio.replay.shapley.game import Bools, Game

NOW, LEFT, CHANGE, FREE, RUNNING, OPEN, PARTS, MOMENT, HIGH, FIXED = range(10)
"""Places in a state: the moment it has come to, processors that its last job still waits for,
changes of processors seen, free processors, entries of the heap, entries of the open jobs, parts of
all jobs that started and are not open, and the sum of the seconds since the begin at which those
are executed, with its second limb if the pass has two. Numbers of fixed size end before `FIXED`."""

OPEN_WIDTH = 4


class Arrays(NamedTuple):
    """A game for compiled functions; the names are those of `Game`.

    Attributes:
        queued: int64[jobs], each organization's jobs in their order, one organization after the
            other.
        first: int64[k + 1], where those of each organization begin in `queued`.
    """

    organization: Ints
    release: Ints
    processing_time: Ints
    processors: Ints
    certain: Ints
    since: Ints
    owned: Ints
    queued: Ints
    first: Ints


class Room(NamedTuple):
    """Where one pass works; it is overwritten by the next.

    Attributes:
        taken: int64[k], jobs of each organization that were looked at.
        heap, later: int64[n], running jobs until the guesses begin, and after that; both are left
            empty.
        open: int64[n, 4], jobs that run for nobody knows how long.
    """

    taken: Ints
    heap: Ints
    later: Ints
    open: Ints


def arrays_of(game: Game) -> Arrays:
    """Arranges a game for `advance`."""
    # as few types of arrays as possible, as each is compiled for
    organization, release, processing_time, processors, since, owned = (
        np.ascontiguousarray(array, dtype=np.int64)
        for array in (
            game.organization,
            game.release,
            game.processing_time,
            game.processors,
            game.since,
            game.owned,
        )
    )
    certain = game.processing_time if game.certain is None else game.certain
    count = np.bincount(organization, minlength=game.organizations)
    return Arrays(
        organization,
        release,
        processing_time,
        processors,
        np.ascontiguousarray(certain, dtype=np.int64),
        since,
        owned,
        queued=np.argsort(organization.astype(np.int16), kind="stable"),
        first=np.concatenate(([0], np.cumsum(count))),
    )


def room_for(arrays: Arrays) -> Room:
    """Returns room for the passes of one core."""
    k, entries = arrays.owned.shape[1], entries_at_most(arrays)
    return Room(
        taken=np.empty(k, dtype=np.int64),
        heap=np.full(entries + BELOW, NEVER),
        later=np.full(entries + BELOW, NEVER),
        open=np.empty((entries, OPEN_WIDTH), dtype=np.int64),
    )


def entries_at_most(arrays: Arrays) -> int:
    """Returns how many entries running and open jobs never exceed, and one."""
    return int(min(arrays.owned.sum(axis=1).max(), arrays.processors.sum())) + 1


@kernel
def advance(  # noqa: C901  # one pass, in the order of time
    arrays: Arrays,
    coalitions: Bools,
    time: int,
    before: Ints,
    before_at: Ints,
    room: Room,
    after: Ints,
    after_at: Ints,
    values: Ints,
) -> None:
    """Values coalitions at a time, and brings their states as far as nothing is guessed.

    Args:
        arrays: the game.
        coalitions: bool[c, k], the members of each.
        time: the second at which they are valued.
        before: states to go on from, one behind the other.
        before_at: int64[c + 1], where each begins and ends; one of no length is that of a
            coalition of which nothing is known.
        room: to work in.
        after: the states that were reached, one behind the other.
        after_at: int64[c + 1], where each begins and ends.
        values: int64[c, 3 or 4], value, parts and processors as in `first_come.values_of`, without
            a horizon, and the value's second limb if it has one (`kernel.wide`).
    """
    taken, heap, later, open_jobs = room.taken, room.heap, room.later, room.open
    begin, wide = arrays.since[0], values.shape[1] == 4
    after_at[0] = 0
    for c in range(len(coalitions)):
        members = coalitions[c]
        now, left, change, free = begin, 0, 0, 0
        running, opened, parts, moment, high = 0, 0, 0, 0, 0
        limit = NEVER
        taken[:] = 0
        at = before_at[c]
        if before_at[c + 1] > at:
            now, left, change = before[at + NOW], before[at + LEFT], before[at + CHANGE]
            free, running = before[at + FREE], before[at + RUNNING]
            parts, moment, high = before[at + PARTS], before[at + MOMENT], before[at + HIGH]
            were_open = before[at + OPEN]
            at += FIXED
            for u in range(len(taken)):
                taken[u] = before[at + u]
            at += len(taken)
            for place in range(running):
                heap[place] = before[at + place]
            at += running
            for _ in range(were_open):
                job = arrays.queued[arrays.first[before[at]] + before[at + 1]]
                start, count = before[at + 2], before[at + 3]
                seconds = arrays.processing_time[job]
                if arrays.certain[job] == seconds:
                    push(heap, running, entry_of(start + seconds, count))
                    running += 1
                    parts += count * seconds
                    high, moment = _later(wide, high, moment, start - begin, seconds, count)
                else:
                    for i in range(OPEN_WIDTH):
                        open_jobs[opened, i] = before[at + i]
                    opened += 1
                    limit = min(limit, start + arrays.certain[job])
                at += OPEN_WIDTH

        for guessing in range(2):
            if guessing:
                at = after_at[c]
                after[at + NOW], after[at + LEFT], after[at + CHANGE] = now, left, change
                after[at + FREE], after[at + RUNNING], after[at + OPEN] = free, running, opened
                after[at + PARTS], after[at + MOMENT], after[at + HIGH] = parts, moment, high
                at += FIXED
                for u in range(len(taken)):
                    after[at + u] = taken[u]
                at += len(taken)
                for place in range(running):
                    after[at + place] = later[place] = heap[place]
                    heap[place] = NEVER
                at += running
                for place in range(opened):
                    for i in range(OPEN_WIDTH):
                        after[at + i] = open_jobs[place, i]
                    at += OPEN_WIDTH
                    u, number, start, count = open_jobs[place]
                    seconds = arrays.processing_time[arrays.queued[arrays.first[u] + number]]
                    push(later, running, entry_of(start + seconds, count))
                    running += 1
                    parts += count * seconds
                    high, moment = _later(wide, high, moment, start - begin, seconds, count)
                after_at[c + 1] = at
                limit = NEVER
                heap = later
            job = _next_job(arrays, taken, left)
            stopped = False
            while job < len(arrays.release) and not stopped:
                u = arrays.organization[job]
                if not members[u]:
                    job += 1
                    continue
                seconds, certain = arrays.processing_time[job], arrays.certain[job]
                if not guessing and certain == 0:
                    break  # it may never start
                instant = max(now, arrays.release[job])
                while True:
                    if instant > time or instant >= limit:
                        stopped = True
                        break
                    now = instant
                    if left == 0:
                        left = arrays.processors[job]
                        taken[u] += 1
                    while running > 0 and end_of(heap[0]) <= now:
                        free += processors_of(heap[0])
                        pop(heap, running)
                        running -= 1
                    while change < len(arrays.since) and arrays.since[change] <= now:
                        free += _gained(arrays.owned, change, members)
                        change += 1
                    if free > 0:
                        count = min(free, left)
                        if certain == seconds or guessing:
                            push(heap, running, entry_of(now + seconds, count))
                            running += 1
                            parts += count * seconds
                            high, moment = _later(wide, high, moment, now - begin, seconds, count)
                        else:
                            open_jobs[opened, 0], open_jobs[opened, 1] = u, taken[u] - 1
                            open_jobs[opened, 2], open_jobs[opened, 3] = now, count
                            opened += 1
                            limit = min(limit, now + certain)
                        free -= count
                        left -= count
                        if left == 0:
                            break
                    instant = end_of(heap[0]) if running > 0 else NEVER
                    if change < len(arrays.since):
                        instant = min(instant, arrays.since[change])
                job += 1
        heap = room.heap

        # every part that was started counts as if it had been executed, those to come with a
        # worth below 0; for running jobs that is set right
        started, working = parts, 0
        for place in range(running):
            beyond, count = end_of(later[place]) - time, processors_of(later[place])
            later[place] = NEVER
            if beyond > 0:
                high, moment = _later(wide, high, moment, 0, beyond, -count)
                parts -= count * beyond
                working += count
        values[c, 0], values[c, 1], values[c, 2] = started * (time - begin) - moment, parts, working
        if wide:
            values[c, 3] = _high_limb(started, time - begin, high, moment)


@inlined
def _next_job(arrays: Arrays, taken: Ints, left: int) -> int:
    """Returns the job that is next: the last one that was looked at while it still waits."""
    last = -1
    for u in range(len(taken)):
        if taken[u] > 0:
            last = max(last, arrays.queued[arrays.first[u] + taken[u] - 1])
    return last if left > 0 else last + 1


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
def _later(
    wide: bool, high: int, low: int, start: int, seconds: int, count: int
) -> tuple[int, int]:
    """Adds the sum of the seconds from a start on, for so many processors; both limbs if wide."""
    if wide:
        return _later_wide(high, low, start, seconds, count)
    odd = seconds & 1
    triangular = (seconds >> (1 - odd)) * ((seconds - 1) >> odd)
    return high, low + count * (seconds * start + triangular)


@kernel
def _later_wide(high: int, low: int, start: int, seconds: int, count: int) -> tuple[int, int]:
    odd = seconds & 1
    sum_high, sum_low = product(seconds >> (1 - odd), (seconds - 1) >> odd)
    more_high, more_low = product(seconds, start)
    sum_high, sum_low = plus(sum_high, sum_low, more_high, more_low)
    sum_high, sum_low = times(sum_high, sum_low, count)
    return plus(high, low, sum_high, sum_low)


@kernel
def _high_limb(parts: int, seconds: int, high: int, low: int) -> int:
    """Returns the high limb of a value: parts times seconds, less the sum of the seconds."""
    value_high, value_low = product(parts, seconds)
    found, _ = minus(value_high, value_low, high, low)
    return found
