"""One coalition's life: jobs end, jobs arrive, and free processors are given to those that wait.

Seconds are discrete, and a moment has that order. A coalition can be stopped at any moment whose
starts are not decided yet, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.bay_state import ConfinedWorld
from shapleyprio.replay.kernel.choice import (
    BY_COPY,
    BY_KEYS,
    FICKLE,
)
from shapleyprio.replay.kernel.codes import RANKED
from shapleyprio.replay.kernel.horizon import next_due, note_end, note_start
from shapleyprio.replay.kernel.in_bays import advance_confined
from shapleyprio.replay.kernel.moment import (
    add_released,
    count_changes,
    lacks_keys,
    next_release,
    next_served,
    put_to_work,
)
from shapleyprio.replay.kernel.notes import lacks_room, open_list
from shapleyprio.replay.kernel.placing import give
from shapleyprio.replay.kernel.rigid import consider
from shapleyprio.replay.kernel.running import (
    COUNT_BITS,
    LARGEST_COUNT,
    LARGEST_OWNER,
    OWNER_BITS,
    packed,
    pop,
)
from shapleyprio.replay.kernel.state import (
    NEVER,
    Coalitions,
    Jobs,
    Record,
    World,
    pieces_of,
)
from shapleyprio.replay.kernel.values import saturate
from shapleyprio.replay.kernel.worth import add


def run(policy: int, world: World | ConfinedWorld, length: int) -> Iterator[int]:
    """Brings the first coalition to the end of the window.

    Yields:
        0 when everything is compiled, then the second that was reached, now and then.
    """
    advance_first(policy, world, 0)
    yield 0
    for until in pieces_of(length):
        advance_first(policy, world, until)
        yield until


def advance_first(policy: int, world: World | ConfinedWorld, until: int) -> bool:
    """Brings the first coalition to the last moment before `until`, as `advance` does."""
    if isinstance(world, ConfinedWorld):
        return advance_confined(policy, world, 0, until)
    return advance(policy, world, 0, 1, EVERY_ARRIVAL, until) == 1


@inlined
def any_of(literal: int) -> int:
    """Returns a number like any other: for a literal, what is called would be compiled apart."""
    return int(np.int64(literal))


EVERY_ARRIVAL = -1
"""Jobs of any organization may arrive."""


@kernel
def advance(policy: int, world: World, first: int, last: int, arriving: int, until: int) -> int:
    """Brings coalitions `first` to before `last` to their last moments before `until`.

    All at once: a call takes longer than many a coalition's events of a block.

    Args:
        policy: by which they choose.
        world: all that there is.
        first: number of the first coalition.
        last: number of the one behind the last.
        arriving: bit u is set if jobs of organization u may arrive; for coalitions of a lattice.
        until: second of the window.

    Returns:
        `last`, or the coalition that stopped: at a moment at which a choice needs keys that are
        not there yet, or because there is no room to note what it will do.
    """
    state, keys = world.state, world.keys
    c = any_of(first)
    while c < last:
        if state.undecided[c] == 0 and lacks_room(keys, c):
            return c
        next_event = min(state.next_end[c], next_due(state, c))
        idle = state.undecided[c] == 0 and next_event >= until and arriving >= 0
        if not ((idle and arriving & c == 0) or _advance_one(policy, world, c, until)):
            return c
        open_list(state, keys, c)
        c += 1
    return c


@inlined
def _advance_one(policy: int, world: World, c: int, until: int) -> bool:
    """Brings coalition c to the last moment before `until`; returns False if it stops to choose."""
    jobs, state = world.jobs, world.state
    arrived = False
    while not arrived:
        if state.undecided[c]:
            if not _decide(policy, world, c):
                break
            state.undecided[c] = 0
            count_changes(state, world.keys, c)
        t = min(state.next_end[c], next_release(jobs, state, c))
        saturate(state, world.keys, c, min(t, until - 1))
        arrived = t >= until
        if not arrived:
            state.now[c] = t
            _end(jobs, state, world.record, c, t)
            _arrive(jobs, state, c, t)
            state.undecided[c] = 1
    return arrived


@inlined
def _arrive(jobs: Jobs, state: Coalitions, c: int, t: int) -> None:
    """Queues the jobs released at t. A coalition passes over a rigid job wider than itself."""
    rigid = jobs.rigid[0] != 0
    place = state.arrived[c]
    while place < len(jobs.arrival) and jobs.arrival[place] == t:
        u, width = jobs.arrival_of[place], jobs.arrival_width[place]
        if state.takes_part[c, u] and not (rigid and width > state.processors[c]):
            state.demand[c] += width
            state.demand_of[c, u] += width
            if state.demand_of[c, u] == width:
                state.waiting[c] += 1
                _open_head(jobs, state, c, u)
        place += 1
    state.arrived[c] = place


@inlined
def _end(jobs: Jobs, state: Coalitions, record: Record, c: int, t: int) -> None:
    """Frees the processors of the jobs that end at t."""
    if state.next_end[c] != t:
        return
    while state.next_end[c] == t:
        first, size = state.heap[c], state.running[c] - 1
        what = state.ends[2 * first + 1]
        pop(state.ends, first, size + 1)
        state.running[c] = size
        state.next_end[c] = state.ends[2 * first] if size > 0 else NEVER
        count = what & LARGEST_COUNT
        job = what >> (OWNER_BITS + COUNT_BITS)
        u = jobs.organization[job]
        add(state.utility[c, u], t, -count)
        state.free[c] += count
        note_end(state, record, c, t, u, (what >> COUNT_BITS) & LARGEST_OWNER, count)
        if record.coalition[0] == c:
            owner = (what >> COUNT_BITS) & LARGEST_OWNER
            record.free_of[owner] += count
            add(record.contribution[owner], t, -count)
            add_released(record, u, owner, t, -count * jobs.release[job])


@inlined
def _decide(  # noqa: C901  # the whole rule of a moment, in its order
    policy: int, world: World, c: int
) -> bool:
    """Starts jobs until no processor is free or none that waits may start.

    Returns:
        False, with nothing started, if the choice needs keys that are not there yet.
    """
    jobs, state = world.jobs, world.state
    waiting = state.waiting[c]
    if state.free[c] == 0 or waiting == 0:
        return True
    contended = waiting > 1 and (policy == RANKED or state.demand[c] > state.free[c])
    if policy in BY_KEYS and contended and lacks_keys(world.keys, c):
        return False
    t, reserved_until, spare = state.now[c], NEVER, 0
    u = -1
    while state.free[c] > 0 and waiting > 0:
        if u < 0:
            u = next_served(policy, world, c, t, contended)
        width, may_start = state.rest[c, u], True
        if jobs.rigid[0] != 0:
            may_start, reserved_until, spare = consider(
                jobs, state, c, t, state.head[c, u], reserved_until, spare
            )
            if not may_start and jobs.backfill[0] == 0:
                return True
        elif policy in BY_COPY:
            width = 1
        if may_start:
            _start(world, c, u, t, min(width, state.free[c]))
        if not may_start or state.demand_of[c, u] == 0:
            if not may_start:
                state.passed[c, u] = t
            waiting -= 1
            u = -1
        elif policy in FICKLE:
            u = -1
    return True


@inlined
def _open_head(jobs: Jobs, state: Coalitions, c: int, u: int) -> None:
    """Goes on to the first job of u that waits."""
    job = state.head[c, u]
    if jobs.rigid[0] != 0:
        while jobs.width[job] > state.processors[c]:
            job += 1
    state.head[c, u] = job
    state.rest[c, u] = jobs.width[job]


@inlined
def _start(world: World, c: int, u: int, t: int, processors: int) -> None:
    """Gives free processors to the first job of u."""
    jobs, state, record = world.jobs, world.state, world.record
    job = state.head[c, u]
    if record.coalition[0] == c:
        _start_recorded(world, c, job, t, processors)
    else:
        put_to_work(state, c, t + jobs.processing_time[job], packed(job, 0, processors))
    state.free[c] -= processors
    state.demand[c] -= processors
    state.demand_of[c, u] -= processors
    state.rest[c, u] -= processors
    state.served[c] = u
    if state.rest[c, u] == 0:
        state.head[c, u] = job + 1
        if state.demand_of[c, u] != 0:
            _open_head(jobs, state, c, u)
        else:
            state.waiting[c] -= 1
    add(state.utility[c, u], t, processors)
    note_start(state, record, c, t, u, processors)


@kernel
def _start_recorded(world: World, c: int, job: int, t: int, processors: int) -> None:
    """Gives free processors to a job, and writes down whose they are."""
    jobs, state, record = world.jobs, world.state, world.record
    u = jobs.organization[job]
    give(record, record.free_of, record.given, job, state.free[c], processors)
    for owner in range(len(record.owned)):
        count = record.given[owner]
        if count == 0:
            continue
        put_to_work(state, c, t + jobs.processing_time[job], packed(job, owner, count))
        record.free_of[owner] -= count
        add(record.contribution[owner], t, count)
        add_released(record, u, owner, t, count * jobs.release[job])
        entry = record.size[0]
        record.size[0] = entry + 1
        record.job[entry] = job
        record.start[entry] = t
        record.owner[entry] = owner
        record.copies[entry] = count
