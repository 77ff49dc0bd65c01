"""The state of the engine: the jobs, every coalition's schedule so far, and the recorded one.

Named tuples of arrays, which functions in C get as structs. The sums of part-seconds
are kept much as in `shapleyprio.fairness.utility`: three moments of the events "w processors start
(−w: stop) working at second τ", Σw, Σwτ and Σwτ(τ−1)/2, and a worth that is a polynomial in the
time. Where 64 bits are too few for the last one (`wide`), it has a second limb behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.bay_state import BaySchedules, no_bays, schedules_in
from shapleyprio.replay.engine.keys import Block, Ints, Keys
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload

NEVER = 2**62
"""A time that does not come."""


class Jobs(NamedTuple):
    """The jobs as the organizations queue them; nothing here ever changes.

    Attributes:
        first: [organizations + 1], the jobs of u are first[u] up to first[u + 1], in FIFO order.
        organization, release, processing_time, width: [jobs].
        certain: [jobs], seconds of each processing time that are known; all, but for games of which
            the future is guessed.
        estimate: [jobs], the processing time that a backfilling scheduler expects.
        position: [jobs], place in the log.
        arrival, arrival_of, arrival_width: [jobs], release, organization and width of the jobs
            in order of release.
        rigid: [1], whether a job needs all its processors at once.
        backfill: [1], whether others may pass a rigid job that does not fit.
        unions: [k], the number of each organization's union; [0] if all stand alone.
    """

    first: Ints
    organization: Ints
    release: Ints
    processing_time: Ints
    width: Ints
    certain: Ints
    estimate: Ints
    position: Ints
    arrival: Ints
    arrival_of: Ints
    arrival_width: Ints
    rigid: Ints
    backfill: Ints
    unions: Ints


class PastEvents(NamedTuple):
    """What coalitions did within the last horizon, and what is older; empty without a horizon.

    An event is "w processors start (−w: stop) working at second τ". Every part is worth
    min(age, H), which is its age less what it is older than H: when H seconds have passed, the
    event is subtracted from what its parts are worth, as if it happened then (see
    `shapleyprio.fairness.utility`).

    Attributes:
        horizon: [1], seconds.
        due: [c], when the oldest event is a horizon old; NEVER if there is none. [0] without a
            horizon, and that is how the engine knows.
        oldest, newest: [c], number of the oldest event, and of the one to come.
        first: [c + 1], where a coalition's events begin; those up to the next one's are its room.
        events: [., 2], event i stands at i modulo the room: its second, and whose it is and how
            many processors in one number.
        in_a_second, within: [c], events of a coalition in a second, and in a horizon, at most.
        utility: [c, k, 3 or 4], moments of each organization's older events, a horizon later.
        total: [c, 3 or 4], of all older events.
        contribution: [k, 3 or 4], of those on each organization's processors, in the schedule
            that is written down.
    """

    horizon: Ints
    due: Ints
    oldest: Ints
    newest: Ints
    first: Ints
    events: Ints
    in_a_second: Ints
    within: Ints
    utility: Ints
    total: Ints
    contribution: Ints


class Coalitions(NamedTuple):
    """Schedules of coalitions, one row each.

    Attributes:
        takes_part: [c, k], whether organization u is a member.
        processors: [c], of all members.
        widest: [c], the most that they ever have: rigid jobs wider than that are passed over.
        free: [c], the idle ones.
        now: [c], the moment it has come to.
        undecided: [c], whether starts at that moment are still to be decided.
        arrived: [c], how many of all arrivals it has passed.
        waiting: [c], how many organizations have a job that waits.
        demand: [c], processors that all waiting jobs need.
        demand_of: [c, k], those of each organization.
        head: [c, k], the first job that has not started whole; the next one if none waits.
        rest: [c, k], processors that its copies still need; all of them if it is rigid.
        passed: [c, k], the moment at which its head was last passed over, −1 at first.
        served: [c], the organization that started last, −1 at first.
        utility: [c, k, 3 or 4], moments of each organization's jobs.
        total: [c, 3 or 4], moments of all jobs.
        guessing: [c], the first moment from which a job runs of which it is unknown whether it
            still does; NEVER if there is none.
        next_end: [c], when the next running job ends.
        running: [c], how many entries its heap has.
        heap: [c + 1], where its heap begins.
        ends: [2 ·], heaps of running jobs, the earliest end first: the end, and behind it what ends
            there, job, owner and processors in one number.
        expected: [2 ·], the same by expected ends, the latest first, if jobs may be passed; else
            empty.
        past: what has to be known to apply a horizon.
    """

    takes_part: NDArray[np.bool_]
    processors: Ints
    widest: Ints
    free: Ints
    now: Ints
    undecided: Ints
    arrived: Ints
    waiting: Ints
    demand: Ints
    demand_of: Ints
    head: Ints
    rest: Ints
    passed: Ints
    served: Ints
    utility: Ints
    total: Ints
    guessing: Ints
    next_end: Ints
    running: Ints
    heap: Ints
    ends: Ints
    expected: Ints
    past: PastEvents


RANDOM, LEAST_LOADED, AS_RECORDED = range(3)
PLACING = {"random": RANDOM, "least-loaded": LEAST_LOADED, "recorded": AS_RECORDED}


class Record(NamedTuple):
    """The schedule that is written down, with the owners of the processors.

    Attributes:
        coalition: [1], to which it belongs.
        owned: [k], processors of each organization.
        free_of: [k], those that are free.
        contribution: [k, 3 or 4], moments of the work on each organization's processors.
        released: [2, k, 2 or 3], moments of releases, of jobs and of the work on processors: what a
            part gains in worth if it counts from its job's release (ψ′ of CloudShare).
        credits: [k], of Karma, in halves (`native/karma.h`).
        usage: [k], decayed processor-seconds of each organization's jobs (`native/decay.h`).
        decay: [2, steps], how usage decays (`decay.steps_of`); [2, 0] if it does not.
        fair_share: [2, k], of KAI: processors, and what was rounded down (`native/kai.h`).
        guarantee: [2], wait after which a job goes first that fits into what its organization owns
            and does not use, NEVER without one; and how often it was looked who asks for it.
        asks: [jobs, 2], since which look each one asks, and at which it asked last; [0, 2] but with
            a guarantee for whole jobs that may have any processor (`native/asking.h`).
        asking: [room], the jobs that ask, the one that goes first at the begin.
        reserved: [room + 1, 2], of each reservation of a moment the second, and the processors
            that it leaves over then.
        random: [1], state of the generator of random numbers.
        placing: [1], RANDOM, LEAST_LOADED or AS_RECORDED: whose free processors a job gets.
        first_part: [jobs + 1], job i really got the parts first_part[i] up to first_part[i + 1].
        part_owner, part_processors: [parts], how many of whose; both empty unless AS_RECORDED.
        given: [k], room for how many of each a job gets.
        size: [1], how many entries there are.
        job, start, owner, bay, copies: [room], the entries; bays are 0 without partitions.
    """

    coalition: Ints
    owned: Ints
    free_of: Ints
    contribution: Ints
    released: Ints
    credits: Ints
    usage: NDArray[np.float64]
    decay: NDArray[np.float64]
    fair_share: Ints
    guarantee: Ints
    asks: Ints
    asking: Ints
    reserved: Ints
    random: NDArray[np.uint64]
    placing: Ints
    first_part: Ints
    part_owner: Ints
    part_processors: Ints
    given: Ints
    size: Ints
    job: NDArray[np.int32]
    start: Ints
    owner: NDArray[np.int32]
    bay: NDArray[np.int32]
    copies: NDArray[np.int32]


class World(NamedTuple):
    """All that the engine works on; without partitions `bays` is empty."""

    jobs: Jobs
    state: Coalitions
    keys: Keys
    record: Record
    bays: BaySchedules = no_bays()


PIECES = 200
"""In how many pieces a window is scheduled, for progress and for Ctrl-C."""


def pieces_of(length: int) -> Iterator[int]:
    """Returns the ends of the pieces of a length, the last one being its end."""
    pieces = min(PIECES, length)
    return (length * piece // pieces for piece in range(1, pieces + 1))


def jobs_of(workload: Workload) -> Jobs:
    """Makes the queues of a workload."""
    k = len(workload.organizations)
    limit, rigid = workload.limit, workload.wide == "rigid"
    arrival = np.argsort(workload.release, kind="stable")
    known = (limit != UNKNOWN) & (limit > workload.processing_time)
    return Jobs(
        first=np.searchsorted(workload.organization, np.arange(k + 1)).astype(np.int64),
        organization=workload.organization.astype(np.int64),
        release=workload.release,
        processing_time=workload.processing_time,
        width=workload.processors,
        certain=workload.processing_time,
        estimate=np.where(known, limit, workload.processing_time),
        position=workload.position,
        arrival=workload.release[arrival],
        arrival_of=workload.organization[arrival].astype(np.int64),
        arrival_width=workload.processors[arrival],
        rigid=np.array([rigid], dtype=np.int64),
        backfill=np.array([rigid and workload.backfill == "easy"], dtype=np.int64),
        unions=np.array(workload.unions or (), dtype=np.int64),
    )


def members_of(coalitions: Ints, organizations: int) -> NDArray[np.bool_]:
    """Returns who takes part in coalitions: [c, k], of numbers with bit u for organization u."""
    bits: NDArray[np.bool_] = ((coalitions[:, None] >> np.arange(organizations)) & 1) != 0
    return bits


def coalitions_of(
    jobs: Jobs,
    owned: Ints,
    takes_part: NDArray[np.bool_],
    *,
    wide: bool,
    horizon: int | None = None,
    seconds: int = NEVER,
) -> Coalitions:
    """Makes coalitions with these members, before the first moment.

    Args:
        jobs: of all organizations.
        owned: [k], processors of each.
        takes_part: [c, k], whether organization u is a member.
        wide: whether sums have two limbs.
        horizon: age in seconds from which a part gains no more worth; None for never.
        seconds: with a horizon there is room for what happens in so many before more is made
            (`horizon.with_more_room`).
    """
    count, k = takes_part.shape
    processors = takes_part @ owned
    heap = np.concatenate(([0], np.cumsum(processors)))

    def zeros(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    return Coalitions(
        takes_part=takes_part,
        processors=processors,
        widest=processors.copy(),
        free=processors.copy(),
        now=zeros(count),
        undecided=zeros(count),
        arrived=zeros(count),
        waiting=zeros(count),
        demand=zeros(count),
        demand_of=zeros(count, k),
        head=np.tile(jobs.first[:-1], (count, 1)),
        rest=zeros(count, k),
        passed=np.full((count, k), -1, dtype=np.int64),
        served=np.full(count, -1, dtype=np.int64),
        utility=zeros(count, k, 3 + wide),
        total=zeros(count, 3 + wide),
        guessing=np.full(count, NEVER, dtype=np.int64),
        next_end=np.full(count, NEVER, dtype=np.int64),
        running=zeros(count),
        heap=heap,
        ends=np.empty(2 * heap[-1], dtype=np.int64),
        expected=np.empty(2 * heap[-1] * jobs.backfill[0], dtype=np.int64),
        past=_past_of(jobs, takes_part, horizon=horizon, seconds=seconds, wide=wide),
    )


def coalitions_in(
    workload: Workload, jobs: Jobs, takes_part: NDArray[np.bool_], block: Block
) -> Coalitions:
    """Makes coalitions that schedule a workload block by block, by its horizon."""
    return coalitions_of(
        jobs,
        workload.owned,
        takes_part,
        wide=block.wide,
        horizon=workload.saturation,
        seconds=block.seconds,
    )


def _past_of(
    jobs: Jobs, takes_part: NDArray[np.bool_], *, horizon: int | None, seconds: int, wide: bool
) -> PastEvents:
    """Makes the past of coalitions in which nothing has happened yet."""
    if horizon is None:
        horizon, takes_part = 0, takes_part[:0, :0]
    count, k = takes_part.shape
    rigid = bool(jobs.rigid[0])
    pieces = np.zeros(k, dtype=np.int64)
    if k:
        np.add.at(pieces, jobs.organization, 1 if rigid else jobs.width)
    # an event for the organization and, in the schedule that is written down, for each owner
    owners = takes_part.all(axis=1) * (k if rigid else 1)
    in_a_second = takes_part.sum(axis=1) + takes_part.all(axis=1) * k
    ever = 2 * (takes_part @ pieces) * (1 + owners)
    within = np.minimum(ever, in_a_second * (horizon + 2))
    first = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.minimum(within, in_a_second * min(seconds, horizon + 2)), out=first[1:])

    def zeros(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    return PastEvents(
        horizon=np.array([horizon], dtype=np.int64),
        due=np.full(count, NEVER, dtype=np.int64),
        oldest=zeros(count),
        newest=zeros(count),
        first=first,
        events=np.empty((first[-1], 2), dtype=np.int64),
        in_a_second=in_a_second,
        within=within,
        utility=zeros(count, k, 3 + wide),
        total=zeros(count, 3 + wide),
        contribution=zeros(k, 3 + wide),
    )


def record_of(
    workload: Workload,
    jobs: Jobs,
    coalition: int,
    seed: int,
    *,
    wide: bool,
    guarantee: int | None = None,
) -> Record:
    """Makes an empty record of that coalition's schedule.

    It has room for every copy; what is never written takes no memory.
    """
    owned = workload.owned
    k, room = len(owned), int(jobs.width.sum())
    first, owner, processors = _parts(workload)
    passes = guarantee is not None and workload.wide == "rigid" and workload.bays is None
    asking = int(owned.sum()) if passes else 0
    return Record(
        coalition=np.array([coalition], dtype=np.int64),
        owned=owned,
        free_of=owned.copy(),
        contribution=np.zeros((k, 3 + wide), dtype=np.int64),
        released=np.zeros((2, k, 2 + wide), dtype=np.int64),
        credits=np.zeros(k, dtype=np.int64),
        usage=np.zeros(k),
        decay=np.zeros((2, 0)),
        fair_share=np.zeros((2, k), dtype=np.int64),
        guarantee=np.array([NEVER if guarantee is None else guarantee, 1], dtype=np.int64),
        asks=np.zeros((passes * len(workload.job), 2), dtype=np.int64),
        asking=np.zeros(asking, dtype=np.int64),
        reserved=np.zeros((asking + 1, 2), dtype=np.int64),
        random=np.array([seed % 2**64], dtype=np.uint64),
        placing=np.array([PLACING[workload.placement]], dtype=np.int64),
        first_part=first,
        part_owner=owner,
        part_processors=processors,
        given=np.zeros(k, dtype=np.int64),
        size=np.zeros(1, dtype=np.int64),
        job=np.empty(room, dtype=np.int32),
        start=np.empty(room, dtype=np.int64),
        owner=np.empty(room, dtype=np.int32),
        bay=np.empty(room, dtype=np.int32),
        copies=np.empty(room, dtype=np.int32),
    )


def _parts(workload: Workload) -> tuple[Ints, Ints, Ints]:
    """Returns what each job really got, if that counts: first part of each, owners, processors."""
    placed = workload.placed
    if placed is None or workload.placement != "recorded":
        none = np.zeros(0, dtype=np.int64)
        return np.zeros(len(workload.job) + 1, dtype=np.int64), none, none
    return placed.first, placed.owners.codes.astype(np.int64), placed.processors


def world_of(
    workload: Workload, jobs: Jobs, state: Coalitions, keys: Keys, record: Record
) -> World:
    """Makes a world in which nothing has happened yet, with the workload's bays, if it has any."""
    world = World(jobs, state, keys, record)
    if workload.bays is None:
        return world
    bays = schedules_in(workload.bays, jobs.organization, jobs.release, state.takes_part)
    return world._replace(bays=bays)
