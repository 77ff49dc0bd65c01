"""The moment of a cycle with which futures begin: who runs, who waits, and who is how far ahead."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shapleyprio.daemon.estimation.known_game import NOWHERE, KnownCapacity, limit_of
from shapleyprio.daemon.estimation.known_runs import PastRun, user_in_account
from shapleyprio.daemon.estimation.messages import WaitingJob
from shapleyprio.daemon.forecasting.lessons import Lessons
from shapleyprio.daemon.forecasting.messages import Competitor, ForecastRequest, MetLimit
from shapleyprio.fairness.rules import DirectContr
from shapleyprio.fairness.shapley import unions_of
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.fairness.worth import Trajectory
from shapleyprio.replay.coalitions.estimate import Estimate
from shapleyprio.replay.engine.codes import DIRECT
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.forecasts.futures import FURTHEST_SECONDS, ByCode, ByEstimate, Order
from shapleyprio.replay.forecasts.present import Executed, Limited, Numbers, Present, releasable
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.nodes import ANY
from shapleyprio.replay.workloads.workload import Window, Workload
from shapleyprio.slurm.reasons import SharedBy

NOT_SUBMITTED = 0
"""Number of a job that nobody has submitted."""

SMALL_SECONDS = 60

UNBOUNDED = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedMoment:
    """A moment, for the engine.

    Attributes:
        present: what runs and waits.
        order: in which it goes on.
        first: index among the present's jobs -> the waiting job, or the first of its tasks.
        base: second at which the clock of the present shows 0.
        organizations: name -> its code in the present.
        place_of: returns the code of a job's partition; NOWHERE if nobody knows it any more.
    """

    present: Present
    order: Order
    first: dict[int, WaitingJob]
    base: int
    organizations: dict[str, int]
    place_of: Callable[[str], int]


def moment_of(
    request: ForecastRequest, running: Sequence[PastRun], lessons: Lessons, most: int | None
) -> PlayedMoment:
    """Returns what futures begin with.

    Args:
        request: who competes for what.
        running: runs that hold processors.
        lessons: of the past.
        most: so many jobs of each organization wait at most, those behind them are left out; None
            for all.
    """
    competitors = request.competitors
    code = {competitor.name: u for u, competitor in enumerate(competitors)}
    # who waits is released a second later, for the engine decides when something happens
    before = request.t - 1
    base = min([before, *(run.begin for run in running)])
    t = before - base
    on_nodes = [(run, nodes) for run in running if (nodes := _held(request, run))]
    capacity = _capacity(request, on_nodes)
    place_of = _places(capacity)
    found = _Rows(request, lessons, place_of, base, t)
    nobody, sizes = code.get(NOBODY, 0), _sizes(capacity)
    at_work_for: list[list[_HeldNodes]] = [[] for _ in code]
    for run, nodes in on_nodes:
        at_work_for[code.get(run.organization, nobody)].append((run, nodes))
    waiting: dict[str, list[WaitingJob]] = {}
    for one in request.waiting:
        waiting.setdefault(one.organization, []).append(one)
    for u, name in enumerate(code):
        found.add_running(u, at_work_for[u])
        if competitors[u].score is None:
            found.add_unknown(u, on_nodes)
        found.add_waiting(u, waiting.get(name, ()), sizes, most)
    after, limited = found.behind_others(request.met_limits)
    table = np.array(found.rows, dtype=np.int64).reshape(-1, 7)
    organization, release, processors, limit, user, start, partition = table.T.copy()
    job, owner, held, bay = np.array(found.pieces, dtype=np.int64).reshape(-1, 4).T.copy()
    at_work = np.bincount(organization[job], weights=held, minlength=len(code)).astype(np.int64)
    owned = capacity.owned[0].sum(axis=0)
    bays = capacity.bays_for(partition, always=True)
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
            unions=unions_of(tuple(code), request.parents),
            wide="rigid",
            backfill="easy",
            bays=bays,
        ),
        user=user,
        start=start,
        job=job,
        owner=owner,
        processors=held,
        executed=_executed(paths, t),
        bay=bay,
        after=after,
        limited=limited,
        closes=_closes(request, capacity, base),
        passes_own=True,
    )
    return PlayedMoment(
        present=present,
        order=_order(request.rule, paths, t),
        first=found.first,
        base=base,
        organizations=code,
        place_of=place_of,
    )


def with_small_jobs(request: ForecastRequest) -> ForecastRequest:
    """Returns a request with a small job of each organization, last of all in the queue.

    It is in the partition with the most processors.
    """
    sizes = request.sizes
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
            partition=max(sizes, key=lambda name: sizes[name]),
        )
        for competitor in request.competitors
        if competitor.score is not None and sizes
    ]
    return replace(request, waiting=(*request.waiting, *small))


_HeldNodes = tuple[PastRun, dict[str, int]]
"""A run and node -> processors that it holds there."""


def _held(request: ForecastRequest, run: PastRun) -> dict[str, int]:
    """Returns what a run holds on nodes that are known; nothing if it is known to have ended."""
    held = {name: count for name, count in run.nodes.items() if name in request.nodes}
    has_ended = any(not request.nodes[name].busy for name in held)
    return {} if has_ended else held


def _capacity(request: ForecastRequest, held: Iterable[_HeldNodes]) -> KnownCapacity:
    """Returns who brings how many processors to which bays, at least those that are at work."""
    bays = request.bays or ((),)
    owned, busy = np.zeros((2, 1, len(bays), len(request.competitors)), dtype=np.int64)
    for node in request.nodes.values():
        owned[0, node.bay, node.owner] += node.processors
    for _, nodes in held:
        for name, count in nodes.items():
            node = request.nodes[name]
            busy[0, node.bay, node.owner] += count
    return KnownCapacity(bays=bays, since=np.array([request.t]), owned=np.maximum(owned, busy))


def _sizes(capacity: KnownCapacity) -> Sequence[int]:
    """Returns how many processors each partition has."""
    of_bays = capacity.owned[0].sum(axis=1).tolist()
    return [
        sum(
            count
            for names, count in zip(capacity.bays, of_bays, strict=True)
            if partition in (ANY, *names)
        )
        for partition in capacity.partitions
    ]


def _closes(request: ForecastRequest, capacity: KnownCapacity, base: int) -> Ints | None:
    """Returns when each partition closes first."""
    if not request.closings:
        return None
    found = [request.closings.get(name) for name in capacity.partitions]
    return np.array([NEVER if one is None else one[0].begin - base for one in found])


def _places(capacity: KnownCapacity) -> Callable[[str], int]:
    known = {name: number for number, name in enumerate(capacity.partitions)}

    def place_of(partitions: str) -> int:
        """Returns the code of the first that is known of a job's partitions."""
        return next((known[name] for name in partitions.split(",") if name in known), NOWHERE)

    return place_of


class _Rows:
    """Collects the jobs of a present, by organization, and which processors those that run hold."""

    def __init__(
        self,
        request: ForecastRequest,
        lessons: Lessons,
        place_of: Callable[[str], int],
        base: int,
        t: int,
    ) -> None:
        self._nodes = request.nodes
        self._after = request.after
        self._places: dict[int, range] = {}
        self._running: list[tuple[PastRun, int]] = []
        self._lessons = lessons
        self._place_of = place_of
        self._base = base
        self._t = t
        self.rows: list[tuple[int, ...]] = []
        self.first: dict[int, WaitingJob] = {}
        self.pieces: list[tuple[int, ...]] = []

    def add_running(self, u: int, held: Iterable[_HeldNodes]) -> None:
        """Adds what runs of an organization, on nodes that are known."""
        nodes, t = self._nodes, self._t
        for run, of_run in held:
            self._places[run.job_id] = range(len(self.rows), len(self.rows) + 1)
            self._running.append((run, len(self.rows)))
            self.pieces += [
                (len(self.rows), nodes[name].owner, count, nodes[name].bay)
                for name, count in of_run.items()
            ]
            begin = min(run.begin - self._base, t)
            release = max(min(run.release - self._base, begin), 0)
            user, place = self._lessons.user(run.user), max(self._place_of(run.partition), 0)
            limit = limit_of(run.limit)
            self.rows.append((u, release, sum(of_run.values()), limit, user, begin, place))

    def add_unknown(self, u: int, held: Iterable[_HeldNodes]) -> None:
        """Adds a job that holds what no run is known to: accounting hears of starts later.

        On which nodes of one owner a run holds how many is not known, but how many in all.
        """
        held_at: Counter[tuple[int, int]] = Counter()
        for node in self._nodes.values():
            held_at[node.owner, node.bay] += min(node.busy, node.processors)
        for _, of_run in held:
            for name, count in of_run.items():
                held_at[self._nodes[name].owner, self._nodes[name].bay] -= count
        pieces = [(len(self.rows), owner, count, bay) for (owner, bay), count in (+held_at).items()]
        if pieces:
            self.pieces += pieces
            processors = sum(count for _, _, count, _ in pieces)
            self.rows.append((u, self._t, processors, UNKNOWN, UNKNOWN, self._t, 0))

    def add_waiting(
        self, u: int, waiting: Iterable[WaitingJob], sizes: Sequence[int], most: int | None
    ) -> None:
        """Adds what waits of an organization and fits into its partition."""
        left = UNBOUNDED if most is None else most
        for job in waiting:
            if left <= 0 or job.tasks <= 0:
                continue
            each, place = job.processors // job.tasks, self._place_of(job.partition)
            if place == NOWHERE or not 0 < each <= sizes[place]:
                continue
            self.first[len(self.rows)] = job
            user = self._lessons.user(user_in_account(job.user, job.account))
            release = max(self._t + 1, job.release - self._base)
            row = (u, release, each, limit_of(job.limit), user, UNKNOWN, place)
            self._places[job.job_id] = range(len(self.rows), len(self.rows) + min(job.tasks, left))
            self.rows += [row] * min(job.tasks, left)
            left -= job.tasks

    def behind_others(
        self, met_limits: Sequence[MetLimit]
    ) -> tuple[dict[int, tuple[int, ...]], tuple[Limited, ...]]:
        """Returns the rows that are released after the ends of others -> these; and limits.

        Of a job nothing is told any more that depends on one that is not known, or that a limit
        keeps back of which nothing is known that uses it up; then its rows depend on themselves.
        """
        if not (self._after or met_limits):
            return {}, ()
        sharing: dict[tuple[SharedBy, str], list[int]] = defaultdict(list)
        for run, row in self._running:
            sharing[SharedBy.USER, run.user].append(row)
            sharing[SharedBy.ACCOUNT, run.account].append(row)
            sharing[SharedBy.ARRAY, str(run.array)].append(row)
        after: dict[int, tuple[int, ...]] = {}
        for number, others in self._after.items():
            before = [
                {*self._places.get(other, ()), *sharing.get((SharedBy.ARRAY, str(other)), ())}
                for other in others
            ]
            for row in self._places.get(number, ()):
                after[row] = tuple(set().union(*before)) if all(before) else (row,)
        limited = []
        for jobs, shared_by, name, by_processors in met_limits:
            rows = [row for number in jobs for row in self._places.get(number, ())]
            if found := sharing.get((shared_by, name)):
                limited.append(Limited(tuple(found), tuple(rows), by_processors))
            else:
                after |= {row: (row,) for row in rows}
        for row in after.keys() - releasable(after):
            self.first.pop(row, None)
        return after, tuple(limited)


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
    margin = processors * FURTHEST_SECONDS**2 // 2
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
