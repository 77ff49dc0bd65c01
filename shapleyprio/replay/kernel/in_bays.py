"""A coalition's life as in `engine`, where a job only gets processors of its partition's bays.

The jobs of an organization in one partition are a queue: those of another one may pass them. Of
an organization the first of the jobs is tried that are first in a queue, and in whose partition
a processor is free.
"""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.bay_state import (
    ARRIVING,
    CLOSED,
    DEMAND,
    FOLLOWING,
    FREE,
    HEAD,
    PARTITION,
    PASSED,
    RESERVED,
    REST,
    SIZE,
    SPARE,
    WANTED,
    BaySchedules,
    ConfinedWorld,
)
from shapleyprio.replay.kernel.choice import BY_COPY, BY_KEYS, FICKLE
from shapleyprio.replay.kernel.codes import KEYED
from shapleyprio.replay.kernel.horizon import note_end, note_start
from shapleyprio.replay.kernel.keys import Ints
from shapleyprio.replay.kernel.moment import (
    add_released,
    count_changes,
    lacks_keys,
    next_release,
    next_served,
    put_to_work,
)
from shapleyprio.replay.kernel.placing import give
from shapleyprio.replay.kernel.running import COUNT_BITS, LARGEST_COUNT, pop, push
from shapleyprio.replay.kernel.state import NEVER, Coalitions, Jobs, Record
from shapleyprio.replay.kernel.values import saturate
from shapleyprio.replay.kernel.worth import add

PLACE_BITS = 13
LARGEST_PLACE: int = 2**PLACE_BITS - 1
"""A place is a bay and an owner there; whose the processors are is not asked in coalitions."""


@kernel
def advance_confined(policy: int, confined: ConfinedWorld, c: int, until: int) -> bool:
    """Does what `engine.advance` does."""
    world, bays = confined.world, confined.bays
    jobs, state = world.jobs, world.state
    while True:
        if state.undecided[c]:
            if not _decide(policy, confined, c):
                return False
            state.undecided[c] = 0
            count_changes(state, world.keys, c)
        t = min(state.next_end[c], next_release(jobs, state, c))
        saturate(state, world.keys, c, min(t, until - 1))
        if t >= until:
            return True
        state.now[c] = t
        while state.next_end[c] == t:
            _end(jobs, state, world.record, bays, c, t)
        _arrive(jobs, state, bays, c, t)
        state.undecided[c] = 1


@inlined
def _end(
    jobs: Jobs,
    state: Coalitions,
    record: Record,
    bays: BaySchedules,
    c: int,
    t: int,
) -> None:
    """Frees the processors of one job that ends at t, in one bay."""
    first, size = state.heap[c], state.running[c] - 1
    what = state.ends[2 * first + 1]
    pop(state.ends, first, size + 1)
    state.running[c] = size
    state.next_end[c] = state.ends[2 * first] if size > 0 else NEVER
    count, job = what & LARGEST_COUNT, what >> (PLACE_BITS + COUNT_BITS)
    place = (what >> COUNT_BITS) & LARGEST_PLACE
    bay, owner, u = (
        place // len(bays.given),
        place % len(bays.given),
        jobs.organization[job],
    )
    add(state.utility[c, u], t, -count)
    state.free[c] += count
    bays.bays[c, bay, FREE] += count
    note_end(state, record, c, t, u, owner, count)
    if record.coalition[0] == c:
        bays.free_of[bay, owner] += count
        add(record.contribution[owner], t, -count)
        add_released(record, u, owner, t, -count * jobs.release[job])


@inlined
def _arrive(jobs: Jobs, state: Coalitions, bays: BaySchedules, c: int, t: int) -> None:
    """Queues the jobs released at t. Rigid jobs wider than their partition are passed over."""
    place = state.arrived[c]
    while place < len(jobs.arrival) and jobs.arrival[place] == t:
        job = bays.jobs[place, ARRIVING]
        u, width, partition = (
            jobs.organization[job],
            jobs.width[job],
            bays.jobs[job, PARTITION],
        )
        possible = jobs.rigid[0] == 0 or width <= bays.partitions[c, partition, SIZE]
        if state.takes_part[c, u] and possible:
            state.demand[c] += width
            state.waiting[c] += state.demand_of[c, u] == 0
            state.demand_of[c, u] += width
            queue = u * len(bays.reach) + partition
            bays.queues[c, queue, DEMAND] += width
            if bays.queues[c, queue, DEMAND] == width:
                _open_head(bays, jobs.width, jobs.rigid[0], c, queue)
        place += 1
    state.arrived[c] = place


@kernel
def _open_head(bays: BaySchedules, width: Ints, rigid: int, c: int, queue: int) -> None:
    """Goes on to the first job of a queue that waits."""
    job = bays.queues[c, queue, HEAD]
    if rigid != 0:
        while width[job] > bays.partitions[c, queue % len(bays.reach), SIZE]:
            job = bays.jobs[job, FOLLOWING]
    bays.queues[c, queue, HEAD] = job
    bays.queues[c, queue, REST] = width[job]


@inlined
def _decide(policy: int, confined: ConfinedWorld, c: int) -> bool:
    """Starts jobs until no partition of a job that waits has a processor free, or none may start.

    Returns:
        False, with nothing started, if the choice needs keys that are not there yet.
    """
    world, bays = confined.world, confined.bays
    jobs, state = world.jobs, world.state
    if state.free[c] == 0 or state.waiting[c] == 0:
        return True
    t = state.now[c]
    candidates = _find_candidates(bays, state.passed, state.head, c, t)
    contended = candidates > 1 and (policy != KEYED or not _all_fit_anyhow(bays, c, t))
    if policy in BY_KEYS and contended and lacks_keys(world.keys, c):
        return False
    bays.partitions[c, :, RESERVED] = NEVER
    u = -1
    while candidates > 0:
        if u < 0 or state.passed[c, u] == t:
            u = next_served(policy, world, c, t, contended)
        job = state.head[c, u]
        partition = bays.jobs[job, PARTITION]
        queue = u * len(bays.reach) + partition
        width, may_start = bays.queues[c, queue, REST], True
        if jobs.rigid[0] != 0:
            may_start = _may_start(jobs, state, bays, c, t, job)
        else:
            width = 1 if policy in BY_COPY else min(width, _open_in(bays, c, t, partition))
        if may_start:
            _start(confined, c, job, t, width)
        elif jobs.backfill[0] == 0:
            _close(bays, c, t, partition)
        else:
            bays.queues[c, queue, PASSED] = t
        candidates = _find_candidates(bays, state.passed, state.head, c, t)
        if policy in FICKLE:
            u = -1
    return True


@kernel
def _find_candidates(bays: BaySchedules, passed: Ints, head: Ints, c: int, t: int) -> int:
    """Finds the job of each organization that is tried next, or that will be at a later moment.

    Returns:
        How many organizations have one now; the others are passed over at this moment.
    """
    found, partitions = 0, len(bays.reach)
    for u in range(len(bays.given)):
        now = later = NEVER
        for partition in range(partitions):
            queue = u * partitions + partition
            if bays.queues[c, queue, DEMAND] != 0:
                job = bays.queues[c, queue, HEAD]
                later = min(later, job)
                if bays.queues[c, queue, PASSED] != t and _open_in(bays, c, t, partition) > 0:
                    now = min(now, job)
        passed[c, u] = t if now == NEVER else -1
        found += now != NEVER
        if later != NEVER:
            head[c, u] = later if now == NEVER else now
    return found


@kernel
def _open_in(bays: BaySchedules, c: int, t: int, partition: int) -> int:
    """Returns how many processors a job of a partition could get."""
    free = 0
    for bay in range(bays.reach.shape[1]):
        if bays.reach[partition, bay] and bays.bays[c, bay, CLOSED] != t:
            free += bays.bays[c, bay, FREE]
    return free


@kernel
def _close(bays: BaySchedules, c: int, t: int, partition: int) -> None:
    """Keeps the bays of a partition for the job that does not fit."""
    for bay in range(bays.reach.shape[1]):
        if bays.reach[partition, bay]:
            bays.bays[c, bay, CLOSED] = t


@kernel
def _all_fit_anyhow(bays: BaySchedules, c: int, t: int) -> bool:
    """Returns whether all that may start gets processors of the same bays in any order.

    That is so where the bay that each job would take first has room for all of them.
    """
    bays.bays[c, :, WANTED] = 0
    for queue in range(bays.queues.shape[1]):
        partition = queue % len(bays.reach)
        demand = bays.queues[c, queue, DEMAND]
        if demand != 0 and _open_in(bays, c, t, partition) > 0:
            bay = 0
            while not bays.reach[partition, bay] or bays.bays[c, bay, FREE] == 0:
                bay += 1
            bays.bays[c, bay, WANTED] += demand
            if bays.bays[c, bay, WANTED] > bays.bays[c, bay, FREE]:
                return False
    return True


@inlined
def _may_start(jobs: Jobs, state: Coalitions, bays: BaySchedules, c: int, t: int, job: int) -> bool:
    """Returns whether a rigid job may start now; reserves processors if it does not fit."""
    width, partition = jobs.width[job], bays.jobs[job, PARTITION]
    may_start: bool = width <= _open_in(bays, c, t, partition)
    if jobs.backfill[0] != 0:
        if may_start:
            may_start = _delays_nobody(bays, c, partition, width, t + jobs.estimate[job])
        elif bays.partitions[c, partition, RESERVED] == NEVER:
            _reserve(jobs, state, bays, c, t, width, partition)
    return may_start


@kernel
def _delays_nobody(bays: BaySchedules, c: int, partition: int, width: int, end: int) -> bool:
    """Returns whether a job leaves all reservations what they need, and takes its part of them."""
    for other in range(len(bays.reach)):
        taken = _taken_from(bays, c, partition, width, other)
        if end > bays.partitions[c, other, RESERVED] and taken > bays.partitions[c, other, SPARE]:
            return False
    for other in range(len(bays.reach)):
        if end > bays.partitions[c, other, RESERVED]:
            taken = _taken_from(bays, c, partition, width, other)
            bays.partitions[c, other, SPARE] -= taken
    return True


@kernel
def _taken_from(bays: BaySchedules, c: int, partition: int, width: int, other: int) -> int:
    """Returns how many processors of another partition's bays a job would get now."""
    taken, left = 0, width
    for bay in range(bays.reach.shape[1]):
        if bays.reach[partition, bay]:
            count = min(left, bays.bays[c, bay, FREE])
            left -= count
            if bays.reach[other, bay]:
                taken += count
    return taken


@kernel
def _reserve(
    jobs: Jobs,
    state: Coalitions,
    bays: BaySchedules,
    c: int,
    t: int,
    width: int,
    partition: int,
) -> None:
    """Reserves processors as `rigid` does, in the bays of a partition."""
    first, running = state.heap[c], state.running[c]
    for place in range(running):
        what = state.ends[2 * (first + place) + 1]
        job = what >> (PLACE_BITS + COUNT_BITS)
        start = state.ends[2 * (first + place)] - jobs.processing_time[job]
        push(state.expected, first, place, max(start + jobs.estimate[job], t + 1), what)
    free, at = _open_in(bays, c, t, partition), t
    while running > 0 and (free < width or state.expected[2 * first] == at):
        at, what = state.expected[2 * first], state.expected[2 * first + 1]
        if bays.reach[partition, ((what >> COUNT_BITS) & LARGEST_PLACE) // len(bays.given)]:
            free += what & LARGEST_COUNT
        pop(state.expected, first, running)
        running -= 1
    bays.partitions[c, partition, RESERVED] = at
    bays.partitions[c, partition, SPARE] = free - width


@inlined
def _start(confined: ConfinedWorld, c: int, job: int, t: int, processors: int) -> None:
    """Gives a job free processors of its partition, those of the first bays first."""
    jobs, state, record = confined.world.jobs, confined.world.state, confined.world.record
    bays, u, partition = (
        confined.bays,
        jobs.organization[job],
        confined.bays.jobs[job, PARTITION],
    )
    left, recorded = processors, record.coalition[0] == c
    if recorded:
        record.given[:] = 0
    for bay in range(bays.reach.shape[1]):
        free = 0
        if bays.reach[partition, bay] and bays.bays[c, bay, CLOSED] != t:
            free = bays.bays[c, bay, FREE]
        count = min(left, free)
        if count > 0:
            if recorded:
                _start_recorded(confined, c, job, t, bay, count)
            else:
                what = _packed(bays, job, bay, 0, count)
                put_to_work(state, c, t + jobs.processing_time[job], what)
            bays.bays[c, bay, FREE] -= count
            left -= count
    state.free[c] -= processors
    state.demand[c] -= processors
    state.demand_of[c, u] -= processors
    state.waiting[c] -= state.demand_of[c, u] == 0
    state.served[c] = u
    queue = u * len(bays.reach) + partition
    bays.queues[c, queue, DEMAND] -= processors
    bays.queues[c, queue, REST] -= processors
    if bays.queues[c, queue, REST] == 0:
        bays.queues[c, queue, HEAD] = bays.jobs[job, FOLLOWING]
        if bays.queues[c, queue, DEMAND] != 0:
            _open_head(bays, jobs.width, jobs.rigid[0], c, queue)
    add(state.utility[c, u], t, processors)
    note_start(state, record, c, t, u, processors)


@inlined
def _packed(bays: BaySchedules, job: int, bay: int, owner: int, processors: int) -> int:
    place: int = bay * len(bays.given) + owner
    return (job << (PLACE_BITS + COUNT_BITS)) | (place << COUNT_BITS) | processors


@kernel
def _start_recorded(
    confined: ConfinedWorld, c: int, job: int, t: int, bay: int, processors: int
) -> None:
    """Gives free processors of a bay to a job, and writes down whose they are."""
    jobs, state, record = confined.world.jobs, confined.world.state, confined.world.record
    bays, u, end = (
        confined.bays,
        jobs.organization[job],
        t + jobs.processing_time[job],
    )
    free_of, given = bays.free_of[bay], bays.given
    give(record, free_of, given, job, bays.bays[c, bay, FREE], processors)
    for owner in range(len(given)):
        count = given[owner]
        if count == 0:
            continue
        record.given[owner] += count
        put_to_work(state, c, end, _packed(bays, job, bay, owner, count))
        free_of[owner] -= count
        add(record.contribution[owner], t, count)
        add_released(record, u, owner, t, count * jobs.release[job])
        entry = record.size[0]
        record.size[0] = entry + 1
        record.job[entry] = job
        record.start[entry] = t
        record.owner[entry] = owner
        record.copies[entry] = count
