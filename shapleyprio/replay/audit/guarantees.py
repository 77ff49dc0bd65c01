"""How often a schedule would have been asked for guarantees, and how often it kept them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.guarantee import EligibleJob, Lent
from shapleyprio.replay.alone import NEVER_ALONE, flow_times, flow_times_alone
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantees:
    """What became of an organization's guarantees under a schedule.

    Attributes:
        asked: jobs that had waited for it and fit into what their organization lent.
        kept: those of them that started within as long again, without a break.
        broken: those that did not; the others were used up by other jobs, or the window ended.
        late: seconds by which the broken ones were late, on average; None without any.
        waited: seconds that those that asked waited in all, on average; None without any.
        alone: seconds that they would have waited on their organization's own processors alone;
            None if none of them fits there.
    """

    asked: int
    kept: int
    broken: int
    late: Fraction | None
    waited: Fraction | None
    alone: Fraction | None


def guarantees_under(
    workload: Workload, schedules: Iterable[Schedule], seconds: int
) -> dict[str, tuple[Guarantees, ...]]:
    """Returns policy -> what became of a guarantee of so many seconds, by organization.

    As in the daemon a job asks while it fits, the longest wait first, and is broken when it has
    asked for so long again.
    """
    alone = flow_times_alone(workload)
    return {one.policy: _under(workload, one, seconds, alone) for one in schedules}


def _under(
    workload: Workload, schedule: Schedule, seconds: int, alone: NDArray[np.int64]
) -> tuple[Guarantees, ...]:
    waits = flow_times(workload, schedule) - workload.processing_time
    could = alone != NEVER_ALONE
    alone = alone - workload.processing_time
    found = []
    for u in range(len(workload.organizations)):
        asked: set[int] = set()
        kept = 0
        late: dict[int, int] = {}
        for job, since, until in _claims(workload, schedule, u, seconds, waits):
            asked.add(job)
            if until - since > seconds:
                late[job] = until - since - seconds
            elif until == workload.release[job] + waits[job] < workload.window.length:
                kept += 1
        jobs = np.array(sorted(asked), dtype=np.int64)
        found.append(
            Guarantees(
                asked=len(asked),
                kept=kept,
                broken=len(late),
                late=_mean(np.array(list(late.values()), dtype=np.int64)),
                waited=_mean(waits[jobs]),
                alone=_mean(alone[jobs[could[jobs]]]),
            )
        )
    return tuple(found)


def _mean(seconds: NDArray[np.int64]) -> Fraction | None:
    return Fraction(int(seconds.sum()), len(seconds)) if len(seconds) else None


class _Place(NamedTuple):
    """Where a job is among those that wait, which the daemon asks in this order."""

    since: int
    tasks: int
    position: int
    job: EligibleJob


class _Queue:
    """The jobs that have waited for as long as the guarantee says, in that order."""

    def __init__(self) -> None:
        self._places: dict[int, _Place] = {}
        self._alike: defaultdict[tuple[int, Collection[str]], list[_Place]] = defaultdict(list)

    def __contains__(self, job: int) -> bool:
        return job in self._places

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: _Place) -> None:
        self._places[place.job.job] = place
        insort(self._alike[place.job.processors, place.job.partitions], place)

    def remove(self, job: int) -> None:
        place = self._places.pop(job)
        order = self._alike[place.job.processors, place.job.partitions]
        del order[bisect_left(order, place)]

    def fitting(self, lent: Lent) -> Iterator[int]:
        """Yields the jobs that fit, as `Lent.fitting` does: of thousands, few do.

        Where one does not, none fits that asks for as much in the same partitions.
        """
        left = lent.left()
        orders = [iter(order) for order in self._alike.values() if order]
        heads = [(next(order), n) for n, order in enumerate(orders)]
        heapify(heads)
        while heads and left:
            place, n = heads[0]
            fits = lent.take(place.job, left) > 0
            if fits:
                yield place.job.job
            if fits and (following := next(orders[n], None)):
                heapreplace(heads, (following, n))
            else:
                heappop(heads)


def _claims(
    workload: Workload, schedule: Schedule, u: int, seconds: int, waits: NDArray[np.int64]
) -> Iterator[tuple[int, int, int]]:
    """Yields job, begin and end of each time during which a job asks without a break."""
    length, rigid, name = workload.window.length, workload.wide == "rigid", str(u)
    jobs = np.flatnonzero((workload.organization == u) & (waits > seconds))
    if not len(jobs):
        return
    bays = workload.bays or Bays.single(workload.owned, len(workload.job))
    rooms = _unused(workload, bays, schedule, u)
    begins, ends = defaultdict(list), defaultdict(list)
    for job in jobs.tolist():
        begins[int(workload.release[job]) + seconds].append(job)
        ends[int(workload.release[job] + waits[job])].append(job)
    left, starts = workload.processors.copy(), _copies_started(workload, schedule, jobs)
    unused = bays.own[u].tolist()
    places = [(name, one) for one in bays.partitions]
    sharing = {
        one: [other for other, shares in zip(bays.partitions, row, strict=True) if shares]
        for one, row in zip(bays.partitions, bays.sharing.tolist(), strict=True)
    }
    waiting = _Queue()
    asking: dict[int, int] = {}
    for t in sorted(t for t in {*rooms, *begins, *ends, length} if t <= length):
        for job, copies in starts[t]:
            left[job] -= copies
        fewer = [job for job, _ in starts[t] if job in waiting]
        for job in {*ends[t], *fewer}:
            waiting.remove(job)
        for job in {*begins[t], *fewer}.difference(ends[t]):
            since, width = int(workload.release[job]), int(left[job])
            size = (width, 1) if rigid else (1, width)
            partitions = (bays.partitions[bays.partition[job]],)
            one = EligibleJob(job, name, since, *size, partitions)
            waiting.add(_Place(since, one.tasks, int(workload.position[job]), one))
        unused = rooms.get(t, unused)
        if not waiting and not asking:
            continue
        lent = Lent(dict(zip(places, unused, strict=True)) if t < length else {}, sharing)
        fit = set(waiting.fitting(lent))
        for job in [job for job in asking if job not in fit]:
            yield job, asking.pop(job), t
        for job in fit:
            asking.setdefault(job, t)


def _copies_started(
    workload: Workload, schedule: Schedule, jobs: NDArray[np.int64]
) -> defaultdict[int, list[tuple[int, int]]]:
    """Returns second -> which of these jobs then start copies, and how many; none of whole jobs."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    if workload.wide == "expand":
        own = np.isin(schedule.job, jobs)
        columns = (schedule.start[own], schedule.job[own], schedule.copies[own])
        for start, job, copies in zip(*(one.tolist() for one in columns), strict=True):
            found[start].append((job, copies))
    return found


def _unused(workload: Workload, bays: Bays, schedule: Schedule, u: int) -> dict[int, list[int]]:
    """Returns second -> processors in each partition that u brings and does not use from then on.

    Where it is not known in which bay a job is, it is in all partitions that share nodes with its.
    """
    own = (workload.organization[schedule.job] == u) & (schedule.start < workload.window.length)
    jobs, starts, copies = schedule.job[own], schedule.start[own], schedule.copies[own]
    ends = starts + workload.processing_time[jobs]
    if schedule.bay is None:
        within = bays.sharing[bays.partition[jobs]]
    else:
        within = bays.reach.T[schedule.bay[own]]
    processors = within * copies[:, None]
    seconds, place = np.unique(np.concatenate((starts, ends)), return_inverse=True)
    fewer = np.zeros((len(seconds), len(bays.partitions)), dtype=np.int64)
    np.subtract.at(fewer, place, np.concatenate((processors, -processors)))
    unused = bays.own[u] + fewer.cumsum(axis=0)
    return dict(zip(seconds.tolist(), unused.tolist(), strict=True))
