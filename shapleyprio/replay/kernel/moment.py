"""Pieces of a moment in a coalition's life that do not depend on which processors a job may get."""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined
from shapleyprio.replay.kernel.by_second import least_key_by_second
from shapleyprio.replay.kernel.choice import (
    BY_KEYS,
    BY_UTILITIES,
    first_of_all,
    is_candidate,
    least_key,
)
from shapleyprio.replay.kernel.codes import FIRST_COME
from shapleyprio.replay.kernel.keys import Keys
from shapleyprio.replay.kernel.notes import count
from shapleyprio.replay.kernel.running import push
from shapleyprio.replay.kernel.state import NEVER, Coalitions, Jobs, Record, World
from shapleyprio.replay.kernel.wide import add_released_wide, is_wide
from shapleyprio.replay.kernel.wide_choice import least_key_wide, most_disadvantaged


@inlined
def next_release(jobs: Jobs, state: Coalitions, c: int) -> int:
    """Returns when the next job of a member is released."""
    place = state.arrived[c]
    while place < len(jobs.arrival) and not state.takes_part[c, jobs.arrival_of[place]]:
        place += 1
    state.arrived[c] = place
    return jobs.arrival[place] if place < len(jobs.arrival) else NEVER


@inlined
def add_released(record: Record, u: int, owner: int, t: int, weight: int) -> None:
    """Adds processors that start, or stop, working on a job, times its release."""
    if record.released.shape[2] == 3:
        add_released_wide(record.released[0, u], t, weight)
        add_released_wide(record.released[1, owner], t, weight)
        return
    record.released[0, u, 0] += weight
    record.released[0, u, 1] += weight * t
    record.released[1, owner, 0] += weight
    record.released[1, owner, 1] += weight * t


@inlined
def count_changes(state: Coalitions, keys: Keys, c: int) -> None:
    """Notes how many more processors work after this moment than before, if any."""
    t = state.now[c]
    processors = state.processors[c] - state.free[c] - state.total[c, 0]
    if processors != 0:
        count(state, keys, c, state.total[c], t, processors)


@inlined
def next_served(
    policy: int,
    world: World,
    c: int,
    t: int,
    contended: bool,
) -> int:
    """Returns who is served next.

    Where all can start at once, Ref and Rand take anybody, also in coalitions of which nobody
    asks whose processors a job got.
    """
    wide = is_wide(world.state)
    if not contended and policy == FIRST_COME and world.record.coalition[0] != c:
        return _first_of(world.state, c, t)
    if policy not in BY_KEYS:
        if wide and policy in BY_UTILITIES:
            return most_disadvantaged(policy, world.state, world.record, c, t)
        return first_of_all(policy, world, c, t)
    if not contended:
        return _first_of(world.state, c, t)
    world.keys.begin[3] = 1
    if wide:
        return least_key_wide(world.state, world.keys, c, t)
    if world.keys.by_second.used[0] != 0:
        return least_key_by_second(world.state, world.keys, c, t)
    return least_key(world.state, world.keys, c, t)


@inlined
def _first_of(state: Coalitions, c: int, t: int) -> int:
    u = 0
    while not is_candidate(state, c, t, u):
        u += 1
    return u


@inlined
def lacks_keys(keys: Keys, c: int) -> bool:
    """Returns whether coalition c cannot choose by keys yet."""
    return bool(keys.begin[1] == 0 and c >= keys.begin[2])


@inlined
def put_to_work(state: Coalitions, c: int, end: int, what: int) -> None:
    """Puts what starts now among what runs, until its end."""
    push(state.ends, state.heap[c], state.running[c], end, what)
    state.running[c] += 1
    state.next_end[c] = state.ends[2 * state.heap[c]]
