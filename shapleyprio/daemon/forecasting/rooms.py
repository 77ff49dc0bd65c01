"""The present of a cluster, for futures: who runs, who waits, and who is how far ahead.

Partitions that share nodes are a room, in which jobs compete for all processors alike. Each room is
played for itself: work in the others goes on as it does now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from shapleyprio.common.wording import SECONDS_OF_A_DAY
from shapleyprio.daemon.estimation.known_runs import PastRun, user_in_account
from shapleyprio.daemon.estimation.messages import WaitingJob
from shapleyprio.daemon.forecasting.lessons import Lessons, limit_of, processors_by_owner
from shapleyprio.daemon.forecasting.messages import Competitor, ForecastRequest
from shapleyprio.fairness.directcontr import DirectContr
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.fairness.trajectory import Trajectory
from shapleyprio.replay.coalitions.estimate import Estimate
from shapleyprio.replay.engine.codes import DIRECT
from shapleyprio.replay.forecasts.arrivals import LONGEST
from shapleyprio.replay.forecasts.futures import ByCode, ByEstimate, Order
from shapleyprio.replay.forecasts.present import Executed, Numbers, Present
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Window, Workload

NOT_SUBMITTED = 0
"""Number of a job that nobody has submitted."""

SMALL_SECONDS = 60

UNBOUNDED = 2**62


@dataclass(slots=True)
class PlayedRoom:
    """Partitions that share nodes, and what is in them.

    Attributes:
        partitions: their names.
        elsewhere: names of those that are in other rooms.
        is_largest: whether it has the most processors: runs of partitions that nobody knows, any
            more or at all, are there.
        processors: organization -> those that it brings.
        waiting: jobs that wait here, in the order of the request.
        running: runs that hold processors here.
    """

    partitions: frozenset[str]
    elsewhere: frozenset[str] = frozenset()
    is_largest: bool = False
    processors: dict[str, int] = field(default_factory=dict)
    waiting: list[WaitingJob] = field(default_factory=list)
    running: list[PastRun] = field(default_factory=list)

    def has(self, partitions: str) -> bool:
        """Returns whether a run is here that Slurm says was submitted to these partitions."""
        for name in partitions.split(","):
            if name in self.partitions or name in self.elsewhere:
                return name in self.partitions
        return self.is_largest


def rooms_of(request: ForecastRequest, running: Iterable[PastRun]) -> list[PlayedRoom]:
    """Returns the rooms in which jobs wait.

    Args:
        request: who competes for what.
        running: what holds processors.
    """
    brought = [
        (competitor.name, frozenset(names), count)
        for competitor in request.competitors
        for names, count in competitor.processors
    ]
    rooms: list[PlayedRoom] = []
    for _, names, _ in brought:
        same = [room for room in rooms if room.partitions & names]
        rooms = [room for room in rooms if room not in same]
        rooms.append(PlayedRoom(names.union(*(room.partitions for room in same))))
    of_partition = {name: room for room in rooms for name in room.partitions}
    for organization, names, count in brought:
        held = of_partition[next(iter(names))].processors
        held[organization] = held.get(organization, 0) + count
    largest = max(rooms, key=lambda room: sum(room.processors.values()), default=None)
    if largest is not None:
        largest.is_largest = True
    for job in request.waiting:
        room = of_partition.get(job.partition)
        if room is not None and job.tasks > 0:
            room.waiting.append(job)
    for room in rooms:
        room.elsewhere = frozenset(of_partition.keys() - room.partitions)
    for run in running:
        for room in rooms:
            if room.has(run.partition):
                room.running.append(run)
    return [room for room in rooms if room.waiting]


def with_small_jobs(request: ForecastRequest, room: PlayedRoom) -> PlayedRoom:
    """Returns a room in which also a small job of each organization waits, last of all."""
    small = [
        WaitingJob(
            job_id=NOT_SUBMITTED,
            organization=competitor.name,
            account="",
            user="",
            release=request.t,
            limit=SMALL_SECONDS,
            tasks=1,
            processors=1,
            partition="",
        )
        for competitor in request.competitors
        if competitor.score is not None
    ]
    return replace(room, waiting=[*room.waiting, *small])


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomNow:
    """A room as it is now.

    Attributes:
        present: what runs and waits there.
        order: in which it goes on.
        first: index among the present's jobs -> the waiting job, or the first of its tasks.
        base: second at which the clock of the present shows 0.
        organizations: name -> its code in the present.
    """

    present: Present
    order: Order
    first: dict[int, WaitingJob]
    base: int
    organizations: dict[str, int]


def moment_of(
    request: ForecastRequest, room: PlayedRoom, lessons: Lessons, most: int | None
) -> RoomNow:
    """Returns what futures of a room begin with.

    Args:
        request: who competes for what.
        room: of the request.
        lessons: of the past.
        most: so many jobs of each organization wait at most, those behind them are left out; None
            for all.
    """
    competitors = request.competitors
    code = {competitor.name: u for u, competitor in enumerate(competitors)}
    # who waits is released a second later, for the engine decides when something happens
    before = request.t - 1
    base = min([before, *(run.begin for run in room.running)])
    t = before - base
    rows, first, pieces = _rows(room, code, lessons, (base, t), most)
    table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    organization, release, processors, limit, user, start = table.T.copy()
    job, owner, held = np.array(pieces, dtype=np.int64).reshape(-1, 3).T.copy()
    owned = np.array([room.processors.get(one.name, 0) for one in competitors], dtype=np.int64)
    busy = np.bincount(owner, weights=held, minlength=len(code)).astype(np.int64)
    owned = np.maximum(owned, busy)
    at_work = np.bincount(organization[job], weights=held, minlength=len(code)).astype(np.int64)
    paths = _paths(competitors, at_work.tolist(), int(owned.sum()))
    present = Present(
        t=t,
        jobs=Workload(
            organizations=tuple(code),
            owned=owned,
            window=Window(start=base, length=t + 1),
            job=np.arange(len(table)),
            organization=organization.astype(np.int32),
            release=release,
            processing_time=np.ones(len(table), dtype=np.int64),
            processors=processors,
            limit=limit,
            start=start,
            position=np.arange(len(table)),
            wide="rigid",
            backfill="easy",
        ),
        user=user,
        start=start,
        job=job,
        owner=owner,
        processors=held,
        executed=_executed(paths, t),
    )
    return RoomNow(
        present=present,
        order=_order(request.rule, paths, t),
        first=first,
        base=base,
        organizations=code,
    )


_Row = tuple[int, int, int, int, int, int]
"""Organization, release, processors, limit, user and start."""


def _rows(
    room: PlayedRoom,
    code: dict[str, int],
    lessons: Lessons,
    clock: tuple[int, int],
    most: int | None,
) -> tuple[list[_Row], dict[int, WaitingJob], list[tuple[int, int, int]]]:
    """Returns jobs by organization, those that run first; which wait; and who holds what.

    Args:
        room: in which they are.
        code: of each organization.
        lessons: with the codes of users.
        clock: the second at which it shows 0, and what it shows now.
        most: so many jobs of each organization wait at most.
    """
    base, t = clock
    rows: list[_Row] = []
    first: dict[int, WaitingJob] = {}
    pieces: list[tuple[int, int, int]] = []
    room_for = sum(room.processors.values())
    nobody = code.get(NOBODY, 0)
    for name, u in code.items():
        for run in room.running:
            if code.get(run.organization, nobody) == u:
                held = processors_by_owner(run)
                pieces += [(len(rows), code.get(owner, nobody), n) for owner, n in held.items()]
                begin, user = min(run.begin - base, t), lessons.user(run.user)
                release, limit = min(run.release - base, begin), limit_of(run.limit)
                rows.append((u, max(release, 0), sum(held.values()), limit, user, begin))
        left = UNBOUNDED if most is None else most
        for job in room.waiting:
            each = job.processors // max(job.tasks, 1)
            if job.organization == name and left > 0 and 0 < each <= room_for:
                first[len(rows)] = job
                user = lessons.user(user_in_account(job.user, job.account))
                row = (u, t + 1, each, limit_of(job.limit), user, UNKNOWN)
                rows += [row] * min(job.tasks, left)
                left -= job.tasks
    return rows, first, pieces


_Paths = Sequence[tuple[Trajectory, Trajectory]]
"""Utility and contribution of each organization: it is ranked by their difference."""


def _paths(competitors: Sequence[Competitor], at_work: Sequence[int], processors: int) -> _Paths:
    """Returns the paths of all.

    Their difference alone is as it is: utilities begin with 0, so that numbers stay small. NOBODY
    stays behind all others.

    Args:
        competitors: the organizations.
        at_work: processors that work for each.
        processors: of all.
    """
    lowest = min((one.score.after(0) for one in competitors if one.score), default=0)
    # in the longest future nobody can lose more
    margin = processors * (LONGEST * SECONDS_OF_A_DAY) ** 2 // 2
    last = Trajectory(lowest - margin, 0, 0)
    utilities = [Trajectory(0, 0, running) for running in at_work]
    scores = [last if one.score is None else _whole(one.score) for one in competitors]
    return [(utility, utility + score) for utility, score in zip(utilities, scores, strict=True)]


def _whole(path: Trajectory) -> Trajectory:
    """Returns a path in whole part-seconds."""
    numbers = (path.value, path.rate, path.acceleration)
    return Trajectory(*(number // path.denominator for number in numbers))


def _executed(paths: _Paths, t: int) -> Executed:
    return Executed(
        utility=_moments([utility for utility, _ in paths], t),
        contribution=_moments([contribution for _, contribution in paths], t),
        released=np.zeros((2, len(paths), 2), dtype=object),
        served=UNKNOWN,
    )


def _order(rule: str, paths: _Paths, t: int) -> Order:
    """Returns the order of the rule: that of DirectContr turns with whose processors work."""
    if rule == DirectContr.name:
        return ByCode(DIRECT)
    numerators = tuple((path.value, path.rate, path.acceleration) for _, path in paths)
    estimate = Estimate(
        numerators=numerators, denominator=1, error=np.zeros(len(paths)), coalitions=0
    )
    return ByEstimate(estimate, t)


def _moments(paths: Sequence[Trajectory], t: int) -> Numbers:
    """Returns the moments, as `Executed` has them, of what follows these paths from t on."""
    rows = []
    for path in paths:
        growth, second = path.acceleration, path.acceleration * t - path.rate
        rows.append((growth, second, path.value - growth * (t * (t + 1) // 2) + t * second))
    return np.array(rows, dtype=object).reshape(-1, 3)
