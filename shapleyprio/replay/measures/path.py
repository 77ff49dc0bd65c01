"""A schedule gone through from moment to moment, and what the rule of `ref` would start there."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain, count, groupby

import numpy as np

from shapleyprio.fairness.worth import Moments
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.workload import Workload


class JudgedSystem:
    """What is the same in all schedules of a workload: the jobs and the processors, as lists.

    A system without bays is one bay that all jobs may have.

    Attributes:
        rigid: whether a job needs all its processors at once.
        backfill: whether others may pass a rigid job that does not fit.
        owned: [bay], processors.
        reach: [partition], the bays that its jobs may have, the first of them first.
        partition, organization, processing_time, processors: [job].
        estimate: [job], the processing time that a backfilling scheduler expects.
        possible: [job], whether its partition has as many processors as it needs at once.
    """

    def __init__(self, workload: Workload) -> None:
        bays = workload.bays or Bays.single(workload.owned, len(workload.job))
        self.rigid = workload.wide == "rigid"
        self.backfill = self.rigid and workload.backfill == "easy"
        self.organization: list[int] = workload.organization.tolist()
        self.processing_time: list[int] = workload.processing_time.tolist()
        self.processors: list[int] = workload.processors.tolist()
        self.estimate: list[int] = workload.estimate.tolist()
        self.owned: list[int] = bays.owned.sum(axis=1).tolist()
        self.reach: list[list[int]] = [np.flatnonzero(row).tolist() for row in bays.reach]
        self.partition: list[int] = bays.partition.tolist()
        sizes = [sum(self.owned[bay] for bay in reach) for reach in self.reach]
        self.possible = [
            not self.rigid or processors <= sizes[partition]
            for processors, partition in zip(self.processors, self.partition, strict=True)
        ]


@dataclass(slots=True)
class AtWork:
    """Copies of a job, or all of it, at work in one bay."""

    job: int
    start: int
    bay: int
    processors: int


class WaitingJobs:
    """The jobs of one organization in one partition that wait, in order of release."""

    def __init__(self) -> None:
        self._jobs: deque[int] = deque()

    def append(self, job: int) -> None:
        """Adds a job that was released."""
        self._jobs.append(job)

    def waiting(self, rest: Sequence[int]) -> Iterator[int]:
        """Returns the jobs of which something is left to start, and forgets those before them."""
        while self._jobs and rest[self._jobs[0]] == 0:
            self._jobs.popleft()
        return (job for job in self._jobs if rest[job] > 0)


@dataclass(frozen=True, slots=True)
class JudgedMoment:
    """A second at which jobs start, with what there is before any of them does.

    Everything but `started` changes as the schedule goes on.

    Attributes:
        t: second of the window.
        free: [bay], idle processors.
        running: what is at work.
        queues: (organization, partition) -> its jobs.
        rest: [job], processors or copies that have not started.
        waiting: organizations of which a job waits, ascending.
        started: job -> how many processors or copies of it the schedule starts now.
    """

    t: int
    free: Sequence[int]
    running: Collection[AtWork]
    queues: Mapping[tuple[int, int], WaitingJobs]
    rest: Sequence[int]
    waiting: Sequence[int]
    started: Mapping[int, int]


class SchedulePath:
    """Follows a schedule of a workload.

    Args:
        system: the workload's.
        workload: what was scheduled.
        schedule: its starts.
    """

    def __init__(self, system: JudgedSystem, workload: Workload, schedule: Schedule) -> None:
        self._system = system
        self._length = workload.window.length
        self._starts = _starts_of(schedule, self._length)
        order = np.argsort(workload.release, kind="stable")
        self._releases = list(zip(workload.release[order].tolist(), order.tolist(), strict=True))
        self._organizations = len(workload.organizations)
        self._horizon = workload.saturation
        self._utility = [Moments() for _ in range(self._organizations)]
        self._older = [Moments() for _ in range(self._organizations)]
        self._younger: deque[tuple[int, int, int]] = deque()

    def utilities(self, t: int) -> list[int]:
        """Returns ψ of each organization, at the moment it has come to."""
        found = [moments.worth(t) for moments in self._utility]
        if self._horizon is None:
            return found
        while self._younger and self._younger[0][0] + self._horizon <= t:
            second, u, processors = self._younger.popleft()
            self._older[u].add(second + self._horizon, processors)
        return [worth - old.worth(t) for worth, old in zip(found, self._older, strict=True)]

    def moments(self) -> Iterator[JudgedMoment]:
        """Yields the moments at which jobs start and the order of organizations may matter.

        Left out are those at which a recorded schedule starts more than the processors that are
        free: who is served with processors that are not there is nobody's turn.
        """
        system, length = self._system, self._length
        free, rest = list(system.owned), list(system.processors)
        queues = {
            (u, p): WaitingJobs()
            for u in range(self._organizations)
            for p in range(len(system.reach))
        }
        arrived = [False] * len(rest)
        waits = [0] * self._organizations
        running: dict[int, AtWork] = {}
        ends: list[tuple[int, int]] = []
        releases, starts, number = deque(self._releases), deque(self._starts), count()
        while True:
            t = min(
                ends[0][0] if ends else length,
                releases[0][0] if releases else length,
                starts[0][0] if starts else length,
            )
            if t >= length:
                return
            while ends and ends[0][0] == t:
                run = running.pop(heappop(ends)[1])
                free[run.bay] += run.processors
                self._count(system.organization[run.job], t, -run.processors)
            while releases and releases[0][0] == t:
                job = releases.popleft()[1]
                u = system.organization[job]
                if system.possible[job]:
                    arrived[job] = True
                    queues[u, system.partition[job]].append(job)
                    waits[u] += rest[job]
            if not starts or starts[0][0] != t:
                continue
            now = starts.popleft()[1]
            started = {job: processors for job, processors in now.items() if arrived[job]}
            waiting = [u for u, processors in enumerate(waits) if processors > 0]
            open_now = sum(processors for processors in free if processors > 0)
            all_fit = len(free) == 1 and sum(waits) <= open_now
            if started and len(waiting) > 1 and not all_fit and sum(now.values()) <= open_now:
                yield JudgedMoment(t, free, running.values(), queues, rest, waiting, started)
            for job, processors in now.items():
                u = system.organization[job]
                waits[u] -= processors if arrived[job] else 0
                rest[job] -= processors
                reach = system.reach[system.partition[job]]
                for bay, got in list(taken(free, reach, processors)):
                    free[bay] -= got
                    running[place := next(number)] = AtWork(job, t, bay, got)
                    heappush(ends, (t + system.processing_time[job], place))
                self._count(u, t, processors)

    def _count(self, u: int, t: int, processors: int) -> None:
        self._utility[u].add(t, processors)
        if self._horizon is not None:
            self._younger.append((t, u, processors))


def taken(free: Sequence[int], bays: Sequence[int], processors: int) -> Iterator[tuple[int, int]]:
    """Yields how many processors a job gets in which bay: free ones of the first bays first.

    What a recorded schedule has started beyond them is charged to the first of the bays.
    """
    left = processors
    for bay in bays:
        got = min(left, max(free[bay], 0))
        if got > 0:
            left -= got
            yield bay, got
    if left > 0:
        yield bays[0], left


def _starts_of(schedule: Schedule, length: int) -> list[tuple[int, dict[int, int]]]:
    """Returns what starts at each second before the window's end."""
    entries = zip(
        schedule.start.tolist(), schedule.job.tolist(), schedule.copies.tolist(), strict=True
    )
    starts = []
    for second, together in groupby(entries, key=lambda entry: entry[0]):
        if second >= length:
            break
        jobs: dict[int, int] = {}
        for _, job, copies in together:
            jobs[job] = jobs.get(job, 0) + copies
        starts.append((second, jobs))
    return starts


def starts(system: JudgedSystem, moment: JudgedMoment, order: Sequence[int]) -> dict[int, int]:
    """Returns what is started at a moment: job -> processors or copies.

    Each organization's jobs are tried in order of release, those that the schedule starts at this
    moment before the others: in which order an organization's own jobs start is its own affair.

    Args:
        system: jobs and processors.
        moment: of a schedule; it stays as it is.
        order: of the organizations that wait.
    """
    decision = _Decision(system, moment)
    for organization in order:
        decision.serve(organization)
    return decision.started


class _Decision:
    """The rule of a moment, up to where it has come."""

    def __init__(self, system: JudgedSystem, moment: JudgedMoment) -> None:
        self.started: dict[int, int] = {}
        self._system = system
        self._moment = moment
        self._free = [max(number, 0) for number in moment.free]
        self._begun: list[AtWork] = []
        self._closed: set[int] = set()
        self._reserved: dict[int, tuple[int, int]] = {}

    def serve(self, organization: int) -> None:
        """Starts the organization's jobs, until none of them may start."""
        queues = {
            partition: self._queue(organization, partition)
            for partition in range(len(self._system.reach))
        }
        heads = {p: job for p, queue in queues.items() if (job := next(queue, None)) is not None}
        while open_heads := {p: job for p, job in heads.items() if self._open_in(p) > 0}:
            partition = min(open_heads, key=lambda p: self._place(open_heads[p]))
            job = heads[partition]
            if not self._system.rigid:
                self._start(job, min(self._moment.rest[job], self._open_in(partition)))
            elif self._may_start(job):
                self._start(job, self._system.processors[job])
            elif self._system.backfill:
                del heads[partition]
                continue
            else:
                self._closed.update(self._system.reach[partition])
                continue
            if self.started[job] == self._moment.rest[job]:
                del heads[partition]
                following = next(queues[partition], None)
                if following is not None:
                    heads[partition] = following

    def _queue(self, organization: int, partition: int) -> Iterator[int]:
        waiting = self._moment.queues[organization, partition].waiting(self._moment.rest)
        started = self._moment.started
        whose, where = self._system.organization, self._system.partition
        first = sorted(
            job for job in started if whose[job] == organization and where[job] == partition
        )
        return chain(first, (job for job in waiting if job not in started))

    def _place(self, job: int) -> tuple[bool, int]:
        return job not in self._moment.started, job

    def _open_in(self, partition: int) -> int:
        """Returns how many processors a job of a partition could get."""
        bays = self._system.reach[partition]
        return sum(self._free[bay] for bay in bays if bay not in self._closed)

    def _start(self, job: int, processors: int) -> None:
        self.started[job] = self.started.get(job, 0) + processors
        reach = self._system.reach[self._system.partition[job]]
        bays = [bay for bay in reach if bay not in self._closed]
        for bay, number in list(taken(self._free, bays, processors)):
            self._free[bay] -= number
            self._begun.append(AtWork(job, self._moment.t, bay, number))

    def _may_start(self, job: int) -> bool:
        """Returns whether a rigid job may start; reserves processors if it does not fit."""
        system, width = self._system, self._system.processors[job]
        partition = system.partition[job]
        fits = width <= self._open_in(partition)
        if not system.backfill:
            return fits
        if not fits:
            self._reserved.setdefault(partition, self._reservation(partition, width))
            return False
        end = self._moment.t + system.estimate[job]
        gets = list(taken(self._free, system.reach[partition], width))
        spares = {}
        for other, (second, spare) in self._reserved.items():
            takes = sum(number for bay, number in gets if bay in system.reach[other])
            if end > second:
                if takes > spare:
                    return False
                spares[other] = second, spare - takes
        self._reserved.update(spares)
        return True

    def _reservation(self, partition: int, width: int) -> tuple[int, int]:
        """Returns when a job that does not fit could start, and what would be left over then.

        Running jobs are expected to end when their estimates say, overdue ones in the next second.
        """
        estimate, bays = self._system.estimate, self._system.reach[partition]
        at, free = self._moment.t, self._open_in(partition)
        ends = sorted(
            (max(run.start + estimate[run.job], at + 1), run.processors)
            for run in chain(self._moment.running, self._begun)
            if run.bay in bays
        )
        for end, processors in ends:
            if free >= width and end != at:
                break
            at = end
            free += processors
        return at, free - width
