"""One coalition's life: jobs end, jobs arrive, and free processors are given to those that wait.

Seconds are discrete, and a moment has that order. A coalition can be stopped at any moment whose
starts are not decided yet, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.choice import (
    BY_COPY,
    BY_KEYS,
    BY_UTILITIES,
    FICKLE,
    first_of_all,
    is_candidate,
    least_key,
)
from shapleyprio.replay.kernel.codes import RANKED
from shapleyprio.replay.kernel.horizon import note_end, note_start
from shapleyprio.replay.kernel.rigid import consider
from shapleyprio.replay.kernel.running import (
    COUNT_BITS,
    LARGEST_COUNT,
    LARGEST_OWNER,
    OWNER_BITS,
    packed,
    pop,
    push,
)
from shapleyprio.replay.kernel.state import (
    AS_RECORDED,
    NEVER,
    RANDOM,
    Coalitions,
    Jobs,
    Keys,
    Record,
    World,
    pieces_of,
)
from shapleyprio.replay.kernel.values import note_change, saturate
from shapleyprio.replay.kernel.wide import add_released_wide, is_wide
from shapleyprio.replay.kernel.wide_choice import least_key_wide, most_disadvantaged
from shapleyprio.replay.kernel.worth import add, draw


def run(policy: int, world: World, length: int) -> Iterator[int]:
    """Brings the first coalition to the end of the window.

    Yields:
        0 when everything is compiled, then the second that was reached, now and then.
    """
    advance(policy, world, 0, 0)
    yield 0
    for until in pieces_of(length):
        advance(policy, world, 0, until)
        yield until


@inlined
def any_of(literal: int) -> int:
    """Returns a number like any other: for a literal, what is called would be compiled apart."""
    return int(np.int64(literal))


@kernel
def advance(
    policy: int,
    world: World,
    c: int,
    until: int,
) -> bool:
    """Brings coalition c to the last moment before `until`.

    Returns:
        False if it stopped at a moment at which a choice needs keys that are not there yet.
    """
    jobs, state = world.jobs, world.state
    while True:
        if state.undecided[c]:
            if not _decide(policy, world, c):
                return False
            state.undecided[c] = 0
            _count(state, world.keys, c)
        t = min(state.next_end[c], _next_release(jobs, state, c))
        saturate(state, world.keys, c, min(t, until - 1))
        if t >= until:
            return True
        state.now[c] = t
        _end(jobs, state, world.record, c, t)
        _arrive(jobs, state, c, t)
        state.undecided[c] = 1


@inlined
def _next_release(jobs: Jobs, state: Coalitions, c: int) -> int:
    """Returns when the next job of a member is released."""
    place = state.arrived[c]
    while place < len(jobs.arrival) and not state.takes_part[c, jobs.arrival_of[place]]:
        place += 1
    state.arrived[c] = place
    return jobs.arrival[place] if place < len(jobs.arrival) else NEVER


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
        what = state.ends[first, 1]
        pop(state.ends, first, size + 1)
        state.running[c] = size
        state.next_end[c] = state.ends[first, 0] if size > 0 else NEVER
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
            _add_released(record, u, owner, t, -count * jobs.release[job])


@inlined
def _add_released(record: Record, u: int, owner: int, t: int, weight: int) -> None:
    if record.released.shape[2] == 3:
        add_released_wide(record.released[0, u], t, weight)
        add_released_wide(record.released[1, owner], t, weight)
        return
    record.released[0, u, 0] += weight
    record.released[0, u, 1] += weight * t
    record.released[1, owner, 0] += weight
    record.released[1, owner, 1] += weight * t


@inlined
def _count(state: Coalitions, keys: Keys, c: int) -> None:
    """Notes how many more processors work after this moment than before, if any."""
    t = state.now[c]
    processors = state.processors[c] - state.free[c] - state.total[c, 0]
    if processors == 0:
        return
    note_change(state, keys, c, t, processors)
    add(state.total[c], t, processors)


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
    if policy in BY_KEYS and contended and world.keys.begin[1] == 0:
        return False
    t, reserved_until, spare = state.now[c], NEVER, 0
    u = -1
    while state.free[c] > 0 and waiting > 0:
        if u < 0:
            u = _next(policy, world, c, t, contended)
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
def _next(
    policy: int,
    world: World,
    c: int,
    t: int,
    contended: bool,
) -> int:
    """Returns who is served next. Where all can start at once, Ref and Rand take anybody."""
    wide = is_wide(world.state)
    if policy not in BY_KEYS:
        if wide and policy in BY_UTILITIES:
            return most_disadvantaged(policy, world.state, world.record, c, t)
        return first_of_all(policy, world, c, t)
    if not contended:
        return _first_of(world.state, c, t)
    world.keys.begin[1] = 2
    if wide:
        return least_key_wide(world.state, world.keys, c, t)
    return least_key(world.state, world.keys, c, t)


@inlined
def _first_of(state: Coalitions, c: int, t: int) -> int:
    u = 0
    while not is_candidate(state, c, t, u):
        u += 1
    return u


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
        _run(state, c, t + jobs.processing_time[job], packed(job, 0, processors))
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


@inlined
def _run(state: Coalitions, c: int, end: int, what: int) -> None:
    push(state.ends, state.heap[c], state.running[c], end, what)
    state.running[c] += 1
    state.next_end[c] = state.ends[state.heap[c], 0]


@kernel
def _start_recorded(world: World, c: int, job: int, t: int, processors: int) -> None:
    """Gives free processors to a job, and writes down whose they are."""
    jobs, state, record = world.jobs, world.state, world.record
    u = jobs.organization[job]
    if record.placing[0] == RANDOM:
        _give_random(record, state.free[c], processors)
    else:
        record.given[:] = 0
        left = processors
        if record.placing[0] == AS_RECORDED:
            left -= _give_recorded(record, job, processors)
        _give_least_loaded(record, left)
    for owner in range(len(record.owned)):
        count = record.given[owner]
        if count == 0:
            continue
        _run(state, c, t + jobs.processing_time[job], packed(job, owner, count))
        record.free_of[owner] -= count
        add(record.contribution[owner], t, count)
        _add_released(record, u, owner, t, count * jobs.release[job])
        entry = record.size[0]
        record.size[0] = entry + 1
        record.job[entry] = job
        record.start[entry] = t
        record.owner[entry] = owner
        record.copies[entry] = count


@inlined
def _give_random(record: Record, free: int, wanted: int) -> None:
    """Draws among the free processors, each as likely as any other."""
    left = wanted
    for owner in range(len(record.owned)):
        count = _share_of(record, free, left, record.free_of[owner]) if left > 0 else 0
        free -= record.free_of[owner]
        left -= count
        record.given[owner] = count


@inlined
def _give_recorded(record: Record, job: int, wanted: int) -> int:
    """Takes what is free of the processors that the job really got; returns how many these are."""
    taken = 0
    for part in range(record.first_part[job], record.first_part[job + 1]):
        owner = record.part_owner[part]
        if owner >= 0:
            count = min(record.part_processors[part], record.free_of[owner] - record.given[owner])
            count = min(count, wanted - taken)
            record.given[owner] += count
            taken += count
    return taken


@inlined
def _give_least_loaded(record: Record, wanted: int) -> None:
    """Takes one more processor after the other of whoever has the most free."""
    for _ in range(wanted):
        most = 0
        for owner in range(1, len(record.owned)):
            free = record.free_of[owner] - record.given[owner]
            if free > record.free_of[most] - record.given[most]:
                most = owner
        record.given[most] += 1


@inlined
def _share_of(record: Record, free: int, wanted: int, owned: int) -> int:
    """Draws `wanted` of `free` without putting back, and counts hits of the `owned` ones."""
    if wanted == free:
        return owned
    hits = 0
    for drawn in range(wanted):
        if owned - hits == 0:
            break
        if draw(record.random, free - drawn) < owned - hits:
            hits += 1
    return hits
