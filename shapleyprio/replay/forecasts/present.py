"""The present: what runs, waits or is behind others at a moment, and what was executed so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.engine import expect_anew
from shapleyprio.replay.engine.keys import Ints, wrapped
from shapleyprio.replay.engine.state import (
    ALL_PASS,
    DEMAND,
    FOLLOWING,
    FREE,
    HEAD,
    LAST,
    OPEN,
    PARTITION,
    REST,
    WAITING,
    BaySchedules,
    World,
)
from shapleyprio.replay.native import packed
from shapleyprio.replay.workloads.bays import COUNT_BITS, OWNER_BITS, PLACE_BITS
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload

After = Mapping[int, tuple[int, ...]]
"""Job -> those that have to end before it is released."""


def releasable(after: After) -> frozenset[int]:
    """Returns the dependent jobs that are released some day.

    Jobs that are behind themselves are left out, and those behind them.

    >>> sorted(releasable({2: (1,), 3: (2, 1, 2), 9: (9,), 8: (9,), 4: (0,), 5: (3, 8)}))
    [2, 3, 4]
    """
    behind: dict[int, list[int]] = {}
    for job, others in after.items():
        for other in others:
            behind.setdefault(other, []).append(job)
    missing = {job: len(others) for job, others in after.items()}
    ended = [job for job in behind if job not in after]
    for job in ended:
        for one in behind.get(job, ()):
            missing[one] -= 1
            if not missing[one]:
                ended.append(one)
    return frozenset(job for job, left in missing.items() if not left)


class Limited(NamedTuple):
    """Jobs of which a limit lets no more run at once than run now.

    Attributes:
        running: some jobs.
        waiting: those that the limit keeps back, the first one first.
        by_processors: whether it limits processors, not how many jobs run.
    """

    running: tuple[int, ...]
    waiting: tuple[int, ...]
    by_processors: bool


def kept_back(limited: Iterable[Limited], ends: Ints, processors: Ints) -> After:
    """Returns which jobs have to end before those start that limits keep back.

    The first takes the place of what ends first, those for which nothing is left take that of the
    ones ahead of them. Where that is not enough the limit is wider than what is known to run, and
    nothing more has to end.

    Args:
        limited: jobs, by number.
        ends: int64[jobs], when those end that run.
        processors: int64[jobs].

    >>> kept_back([Limited((0, 1), (2, 3, 4), False)], np.array([9, 5]), np.ones(5, dtype=int))
    {2: (1,), 3: (0,), 4: (2,)}
    >>> kept_back([Limited((0, 1), (2,), True)], np.array([9, 5]), np.array([2, 1, 2]))
    {2: (1, 0)}
    """
    after = {}
    for running, waiting, by_processors in limited:
        sizes = processors.tolist() if by_processors else [1] * len(processors)
        places = deque((job, sizes[job]) for job in sorted(running, key=ends.__getitem__))
        for job in waiting:
            before, missing = [], sizes[job]
            while missing > 0 and places:
                other, left = places.popleft()
                before.append(other)
                missing -= left
                if missing < 0:
                    places.appendleft((other, -missing))
            after[job] = tuple(before)
            places.append((job, sizes[job]))
    return after


def behind_others(after: After, workload: Workload, bays: BaySchedules) -> BaySchedules:
    """Returns bays that have dependent jobs in their queues only when these are released.

    Args:
        after: by the numbers that the jobs have in the workload.
        workload: its jobs.
        bays: of that workload, in which nothing has happened yet.
    """
    known = np.flatnonzero(workload.job != UNKNOWN)
    place = np.empty(len(known), dtype=np.int64)
    place[workload.job[known]] = known
    pairs = [(other, job) for job, others in after.items() for other in others]
    other, job = place[np.array(pairs)].T
    missing = np.zeros(len(workload.job), dtype=np.int64)
    np.add.at(missing, job, workload.processors[other])
    order = np.lexsort((job, other))
    queue = workload.organization * len(bays.reach) + bays.jobs[:, PARTITION]
    left = np.flatnonzero((workload.start == UNKNOWN) & (missing == 0))
    chain = left[np.argsort(queue[left], kind="stable")]
    goes_on = queue[chain[1:]] == queue[chain[:-1]]
    bays.jobs[chain[:-1], FOLLOWING] = np.where(goes_on, chain[1:], -1)
    bays.jobs[chain[-1:], FOLLOWING] = -1
    return bays._replace(
        missing=missing,
        first_behind=np.searchsorted(other[order], np.arange(len(missing) + 1)),
        behind=job[order],
    )


def independent(bays: BaySchedules, workload: Workload) -> NDArray[np.bool_]:
    """Returns bool[jobs], which jobs are behind no others."""
    if not len(bays.missing):
        return np.ones(len(workload.job), dtype=np.bool_)
    found: NDArray[np.bool_] = bays.missing == 0
    return found


Numbers = NDArray[np.object_]
"""Python's integers, which no sum exceeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """Moments of what has started and ended, as `engine.state` has them, by organization.

    Attributes:
        utility: [k, 3], of its jobs.
        contribution: [k, 3], of the work on its processors.
        released: [2, k, 2], of its jobs' releases, and of those of the work on its processors.
        served: organization that started last; UNKNOWN if none has.
    """

    utility: Numbers
    contribution: Numbers
    released: Numbers
    served: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """A schedule of whole jobs at a moment, after what was decided then.

    Attributes:
        t: the moment, in seconds on the workload's clock.
        jobs: those that run and those that wait, in a workload's order.
        user: int64[jobs], code of each one's user; UNKNOWN where not known.
        start: int64[jobs], when each started; UNKNOWN if it waits.
        job, owner, processors: int64[pieces], whose processors each running job has.
        executed: until now.
        bay: int64[pieces], in which bay these are; None without partitions.
        after: waiting job -> those that have to end before it is released, whatever its release;
            only with partitions.
        limited: jobs that limits keep back, as dependent ones; only with partitions.
        closes: int64[partitions], when each closes: what starts before is to end until then; NEVER
            for those that do not. None if none does; only with partitions.
        passes_own: whether jobs pass those of their own organization, too, as Slurm's backfilling
            lets them; only with partitions.
    """

    t: int
    jobs: Workload
    user: Ints
    start: Ints
    job: Ints
    owner: Ints
    processors: Ints
    executed: Executed
    bay: Ints | None = None
    after: After = field(default_factory=dict)
    limited: tuple[Limited, ...] = ()
    closes: Ints | None = None
    passes_own: bool = False

    @property
    def waits(self) -> NDArray[np.bool_]:
        """bool[jobs], whether each waits."""
        waits: NDArray[np.bool_] = self.start == UNKNOWN
        return waits

    @property
    def elapsed(self) -> Ints:
        """int64[jobs], seconds that each has run; 0 if it waits."""
        elapsed: Ints = np.where(self.waits, 0, self.t - self.start)
        return elapsed

    @property
    def free(self) -> int:
        """Processors on which nothing runs."""
        return self.jobs.system_processors - int(self.processors.sum())


def brought_to(present: Present, workload: Workload, world: World) -> World:
    """Returns a world in which all that has come to be is as at present.

    Args:
        present: what is.
        workload: its jobs with the lengths that they are to have, those that run first within
            each organization, and jobs that are released later.
        world: of that workload, in which nothing has happened yet.
    """
    t, released = present.t, workload.release <= present.t
    jobs, state, record = world.jobs, world.state, world.record
    running = workload.start != UNKNOWN
    k, organization = len(workload.organizations), workload.organization
    ahead = np.bincount(organization[running], minlength=k)
    if after := _after(present, workload):
        world = world._replace(bays=behind_others(after, workload, world.bays))
    waits = released & ~running & independent(world.bays, workload)
    waiting = np.bincount(organization[waits], minlength=k)
    wanted = np.zeros(k, dtype=np.int64)
    np.add.at(wanted, organization[waits], workload.processors[waits])
    state.now[0], state.served[0] = t, present.executed.served
    state.arrived[0] = np.count_nonzero(released)
    state.head[0] = jobs.first[:-1] + ahead
    has_waiting = waiting > 0
    state.rest[0, has_waiting] = jobs.width[state.head[0, has_waiting]]
    state.demand_of[0], state.demand[0] = wanted, wanted.sum()
    state.waiting[0] = np.count_nonzero(has_waiting)
    state.free[0] = present.free
    state.utility[0] = _limbs(present.executed.utility, state.utility.shape[2])
    state.total[0] = _limbs(present.executed.utility.sum(axis=0)[None], state.total.shape[1])[0]
    record.contribution[:] = _limbs(present.executed.contribution, state.utility.shape[2])
    record.released[:] = _limbs(present.executed.released, record.released.shape[2])
    if present.bay is None:
        np.subtract.at(record.free_of, present.owner, present.processors)
    else:
        _fill_bays(present.bay, present, workload, world)
    if present.closes is not None:
        world = world._replace(bays=world.bays._replace(closes=present.closes))
    if present.passes_own:
        jobs.backfill[0] = ALL_PASS
    _put_to_work(present, workload, world)
    world = packed(world)
    expect_anew(world)
    return world


def _after(present: Present, workload: Workload) -> After:
    """Returns which jobs of the present are behind which others, where they last so long."""
    known = np.flatnonzero(workload.job != UNKNOWN)
    ends = np.empty(len(known), dtype=np.int64)
    ends[workload.job[known]] = (workload.start + workload.processing_time)[known]
    return {**present.after, **kept_back(present.limited, ends, present.jobs.processors)}


def _fill_bays(bay: Ints, present: Present, workload: Workload, world: World) -> None:
    """Writes into the bays what runs there, and into their queues what waits."""
    bays, first = world.bays, world.jobs.first[:-1]
    np.subtract.at(bays.free_of, (bay, present.owner), present.processors)
    bays.bays[0, :, FREE] = bays.free_of.sum(axis=1)
    bays.partitions[0, :, OPEN] = bays.reach @ bays.bays[0, :, FREE]
    partitions, k = len(bays.reach), len(first)
    queue = workload.organization * partitions + bays.jobs[:, PARTITION]
    left = np.flatnonzero((workload.start == UNKNOWN) & independent(bays, workload))[::-1]
    queues = bays.queues[0]
    queues[:, HEAD] = -1
    queues[queue[left], HEAD], queues[queue[left], REST] = left, workload.processors[left]
    waiting = left[workload.release[left] <= present.t]
    queues[queue[waiting[::-1]], LAST] = waiting[::-1]
    np.add.at(queues[:, DEMAND], queue[waiting], workload.processors[waiting])
    bays.partitions[0, :, WAITING] = queues[:, DEMAND].reshape(k, partitions).sum(axis=0)


def _put_to_work(present: Present, workload: Workload, world: World) -> None:
    """Writes what runs into the heap; `workload.job` are places of the present's jobs there."""
    found = np.full(len(present.start), UNKNOWN, dtype=np.int64)
    running = np.flatnonzero(workload.start != UNKNOWN)
    found[workload.job[running]] = running
    job = found[present.job]
    end = workload.start[job] + workload.processing_time[job]
    order, state = np.argsort(end, kind="stable"), world.state
    heap = state.ends.reshape(-1, 2)
    heap[: len(job), 0] = end[order]
    if present.bay is None:
        place = job << OWNER_BITS | present.owner
    else:
        place = job << PLACE_BITS | (present.bay * len(workload.owned) + present.owner)
    heap[: len(job), 1] = (place << COUNT_BITS | present.processors)[order]
    state.running[0] = len(job)
    if len(job):
        state.next_end[0] = end[order[0]]


def _limbs(numbers: Numbers, columns: int) -> Ints:
    """Returns integers modulo 2^64, with a second limb behind the last one if there is a column."""
    low = [[wrapped(number) for number in row] for row in numbers.reshape(-1, numbers.shape[-1])]
    if columns > numbers.shape[-1]:
        last = numbers[..., -1].reshape(-1).tolist()
        low = [[*row, wrapped(number >> 64)] for row, number in zip(low, last, strict=True)]
    return np.array(low, dtype=np.int64).reshape(*numbers.shape[:-1], columns)
