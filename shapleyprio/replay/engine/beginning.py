"""The state of the engine before the first moment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.keys import Block, Ints, Keys
from shapleyprio.replay.engine.lattice import lattice_keys
from shapleyprio.replay.engine.limits import ref_block
from shapleyprio.replay.engine.state import (
    NEVER,
    PLACING,
    Coalitions,
    Jobs,
    PastEvents,
    Record,
    World,
    schedules_in,
)
from shapleyprio.replay.workloads.choices import Guarantee
from shapleyprio.replay.workloads.workload import Workload

NOBODY = -1
"""No coalition's schedule is written down."""


def jobs_of(workload: Workload) -> Jobs:
    """Makes the queues of a workload."""
    k = len(workload.organizations)
    rigid = workload.wide == "rigid"
    arrival = np.argsort(workload.release, kind="stable")
    return Jobs(
        first=np.searchsorted(workload.organization, np.arange(k + 1)).astype(np.int64),
        organization=workload.organization.astype(np.int64),
        release=workload.release,
        processing_time=workload.processing_time,
        width=workload.processors,
        certain=workload.processing_time,
        estimate=workload.estimate,
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


def _zeros(*shape: int) -> Ints:
    return np.zeros(shape, dtype=np.int64)


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
            (`lattice.with_more_room`).
    """
    count, k = takes_part.shape
    processors = takes_part @ owned
    heap = np.concatenate(([0], np.cumsum(processors)))
    return Coalitions(
        takes_part=takes_part,
        processors=processors,
        widest=processors.copy(),
        free=processors.copy(),
        now=_zeros(count),
        undecided=_zeros(count),
        arrived=_zeros(count),
        waiting=_zeros(count),
        demand=_zeros(count),
        demand_of=_zeros(count, k),
        head=np.tile(jobs.first[:-1], (count, 1)),
        rest=_zeros(count, k),
        passed=np.full((count, k), -1, dtype=np.int64),
        served=np.full(count, -1, dtype=np.int64),
        utility=_zeros(count, k, 3 + wide),
        total=_zeros(count, 3 + wide),
        guessing=np.full(count, NEVER, dtype=np.int64),
        next_end=np.full(count, NEVER, dtype=np.int64),
        running=_zeros(count),
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
    return PastEvents(
        horizon=np.array([horizon], dtype=np.int64),
        due=np.full(count, NEVER, dtype=np.int64),
        oldest=_zeros(count),
        newest=_zeros(count),
        first=first,
        events=np.empty((first[-1], 2), dtype=np.int64),
        in_a_second=in_a_second,
        within=within,
        utility=_zeros(count, k, 3 + wide),
        total=_zeros(count, 3 + wide),
        contribution=_zeros(k, 3 + wide),
    )


def record_of(
    workload: Workload,
    jobs: Jobs,
    coalition: int,
    seed: int,
    *,
    wide: bool,
    guarantee: Guarantee | None = None,
) -> Record:
    """Makes an empty record of that coalition's schedule.

    It has room for every copy; what is never written takes no memory.
    """
    owned = workload.owned
    k, room = len(owned), int(jobs.width.sum())
    first, owner, processors = _parts(workload)
    wait, ahead = guarantee or (NEVER, False)
    passes = guarantee is not None and workload.wide == "rigid"
    partitions = 1 if workload.bays is None else len(workload.bays.partitions)
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
        guarantee=np.array([wait, 1, 0, ahead], dtype=np.int64),
        asks=np.zeros((passes * len(workload.job), 2), dtype=np.int64),
        asking=np.zeros(asking, dtype=np.int64),
        reserved=np.zeros((asking + 1, 2), dtype=np.int64),
        lent=np.zeros(partitions, dtype=np.int64),
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


def ref_world(
    workload: Workload, seed: int, *, recorded: bool = True, more_lists: int = 0
) -> World:
    """Returns all coalitions and keys for them, before the first moment.

    Args:
        workload: what they schedule.
        seed: of the random draws.
        recorded: whether the schedule of all is written down.
        more_lists: of notes, as `lattice.lattice_keys` takes it.

    Raises:
        PolicyError: there are too many organizations, processors or jobs.
    """
    k, jobs = len(workload.organizations), jobs_of(workload)
    block = ref_block(workload)  # refuses what would need too much memory below
    state = coalitions_in(workload, jobs, members_of(np.arange(2**k), k), block)
    unions = workload.unions
    keys = lattice_keys(k, block, more_lists=more_lists, unions=unions)
    record = record_of(workload, jobs, 2**k - 1 if recorded else NOBODY, seed, wide=block.wide)
    return world_of(workload, jobs, state, keys, record)
