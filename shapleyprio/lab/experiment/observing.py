"""Forecasts in a replay: asked at moments of a schedule, from nothing that came later."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shapleyprio.replay.coalitions.estimate import Estimate, denominator_of
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.forecasts.futures import ByCode, ByEstimate, Columns, Order, ReleasedJobs
from shapleyprio.replay.forecasts.present import Executed, Present
from shapleyprio.replay.policies import LIVE, Estimation, RunOptions, policy_named
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import Consortium, Workload, jobs_of


@dataclass(frozen=True, slots=True)
class Known:
    """What is known at a moment.

    Attributes:
        present: the schedule.
        past: what was released.
        predictor: that has learned of all jobs that have ended.
    """

    present: Present
    past: ReleasedJobs
    predictor: Survivors


class Observer:
    """Follows a schedule and knows nothing that lies ahead.

    Args:
        log: of one cluster, of which the workload is a window; what lies before it is known.
        consortium: whose the jobs are.
        workload: what was scheduled, with its history.
        schedule: of it.
    """

    def __init__(
        self, log: Log, consortium: Consortium, workload: Workload, schedule: Schedule
    ) -> None:
        self._workload, self._schedule = workload, schedule
        begin = workload.window.start
        self._jobs = _jobs_of(log, consortium, workload.bays, begin)
        self._first = int(log.release.min()) - begin
        self._ends, self._order = _ends_of(workload, schedule)
        place = np.full(len(log.job), UNKNOWN, dtype=np.int64)
        place[self._jobs.position] = np.arange(len(self._jobs.position))
        self._place = place[workload.position]
        self._learned, self._predictor = 0, Survivors()
        known = np.flatnonzero(self._jobs.processing_time != UNKNOWN)
        end = log.start[self._jobs.position[known]] + self._jobs.processing_time[known]
        self._learn(known[np.argsort(end, kind="stable")])

    def at(self, t: int) -> Known:
        """Returns what is known at a moment of the window; it never falls."""
        workload = self._workload
        ended = int(np.searchsorted(self._ends, t, side="right"))
        jobs = self._order[self._learned : ended]
        self._jobs.processing_time[self._place[jobs]] = workload.processing_time[jobs]
        self._learn(self._place[jobs])
        self._learned = max(ended, self._learned)
        known = int(np.searchsorted(self._jobs.release, t, side="right"))
        return Known(
            present=present_of(workload, self._schedule, t),
            past=ReleasedJobs(self._jobs.at(np.arange(known)), self._first),
            predictor=self._predictor,
        )

    def _learn(self, places: Ints) -> None:
        jobs = self._jobs.at(places)
        columns = (jobs.user, jobs.limit, jobs.processors, jobs.processing_time)
        for job in zip(*(column.tolist() for column in columns), strict=True):
            self._predictor.learn(*job)


def _jobs_of(log: Log, consortium: Consortium, bays: Bays | None, begin: int) -> Columns:
    """Returns the consortium's jobs of a log, on the clock of a window that begins then."""
    whose = consortium.organization
    jobs = np.flatnonzero(whose != UNKNOWN)
    jobs = jobs[np.argsort(log.release[jobs], kind="stable")]
    user = log.labels["user"].codes if "user" in log.labels else np.full(len(log.job), UNKNOWN)
    end = log.start[jobs] + log.processing_time[jobs]
    known = (log.start[jobs] != UNKNOWN) & (end <= begin)
    return Columns(
        release=log.release[jobs] - begin,
        organization=whose[jobs].astype(np.int64),
        processors=log.processors[jobs],
        limit=log.limit[jobs],
        user=user[jobs].astype(np.int64),
        processing_time=np.where(known, log.processing_time[jobs], UNKNOWN),
        position=jobs,
        partition=_partitions_of(log, bays)[jobs],
    )


def _partitions_of(log: Log, bays: Bays | None) -> Ints:
    """Returns the partition of each job of a log, 0 (any processor) where it names none."""
    if bays is None or "partition" not in log.labels:
        return np.zeros(len(log.job), dtype=np.int64)
    column = log.labels["partition"]
    number = {name: code for code, name in enumerate(bays.partitions)}
    codes = [*(number.get(name, 0) for name in column.names), 0]
    return np.array(codes, dtype=np.int64)[column.codes]


def _ends_of(workload: Workload, schedule: Schedule) -> tuple[Ints, Ints]:
    """Returns when jobs end, in that order, and which."""
    job, first = np.unique(schedule.job, return_index=True)
    end = schedule.start[first] + workload.processing_time[job]
    order = np.argsort(end, kind="stable")
    return end[order], job[order]


Orders = Callable[[int], Order]
"""From a second of the window to how the schedule goes on from there."""


def check_forecast(policy: str) -> None:
    """Refuses a policy of which nobody can say in which order it goes on.

    Raises:
        PolicyError: it is such a one, or there is none of that name.
    """
    if policy != LIVE and policy_named(policy).code is None:
        raise PolicyError(
            f"there are no forecasts under {policy}; take {LIVE}, or a policy that looks at one "
            "schedule alone and forgets nothing, such as fairshare"
        )


def schedule_with_orders(
    workload: Workload, policy: str, *, seed: int, estimation: Estimation
) -> tuple[Schedule, Orders]:
    """Returns the schedule of a policy, and how it seemed to go on at each of its moments.

    Args:
        workload: with its history.
        policy: live, or one with a `Policy.code`.
        seed: of all random draws.
        estimation: of contributions.

    Raises:
        PolicyError: as for `check_forecast`.
    """
    check_forecast(policy)
    found, estimates = policy_named(policy), KeptEstimates()
    options = RunOptions(seed=seed, estimation=estimation, estimated=estimates.keep)
    schedule = found.schedule(workload, options)
    if found.code is not None:
        order = ByCode(found.code)
        return schedule, lambda _t: order
    return schedule, lambda t: estimates.order_at(t, len(workload.organizations))


class KeptEstimates:
    """Keeps the estimates by which a policy decided."""

    def __init__(self) -> None:
        self._moments: list[int] = []
        self._found: list[Estimate] = []

    def keep(self, moment: int, estimate: Estimate) -> None:
        """Keeps one, later than those before."""
        self._moments.append(moment)
        self._found.append(estimate)

    def order_at(self, t: int, organizations: int) -> ByEstimate:
        """Returns the order by the last estimate at a moment; by ψ alone if there was none."""
        place = bisect_right(self._moments, t) - 1
        if place < 0:
            return _no_estimate(organizations)
        return ByEstimate(self._found[place], self._moments[place])


def _no_estimate(organizations: int) -> ByEstimate:
    """Returns the order by φ − ψ before anything is known of φ."""
    nothing = Estimate(
        numerators=((0, 0, 0),) * organizations,
        denominator=denominator_of(organizations, None),
        error=np.zeros(organizations),
        coalitions=0,
    )
    return ByEstimate(nothing, 0)


def present_of(workload: Workload, schedule: Schedule, t: int) -> Present:
    """Returns the present of a moment of a schedule.

    Raises:
        PolicyError: jobs are not kept whole.
    """
    if workload.wide != "rigid":
        raise PolicyError("forecasts are of whole jobs; take --wide rigid")
    entries = np.flatnonzero(schedule.start <= t)
    job, start = schedule.job[entries], schedule.start[entries]
    end = start + workload.processing_time[job]
    begun = np.full(len(workload.job), UNKNOWN, dtype=np.int64)
    begun[job] = start
    ended = np.zeros(len(workload.job), dtype=np.bool_)
    ended[job[end <= t]] = True
    there = np.flatnonzero((workload.release <= t) & ~ended)
    place = np.full(len(workload.job), UNKNOWN, dtype=np.int64)
    place[there] = np.arange(len(there))
    runs = end > t
    history = workload.history
    unknown = np.full(len(there), UNKNOWN, dtype=np.int64)
    return Present(
        t=t,
        jobs=replace(jobs_of(workload, there), history=None, left_out={}),
        user=unknown if history is None else history.user[there],
        start=begun[there],
        job=place[job[runs]],
        owner=schedule.owner[entries][runs].astype(np.int64),
        processors=schedule.copies[entries][runs],
        executed=_executed(workload, schedule, entries, t),
        bay=_bay(workload, schedule, entries[runs]),
    )


def _bay(workload: Workload, schedule: Schedule, entries: Ints) -> Ints | None:
    if workload.bays is None:
        return None
    assert schedule.bay is not None, "a schedule that no engine made"
    return schedule.bay[entries].astype(np.int64)


def _executed(workload: Workload, schedule: Schedule, entries: Ints, t: int) -> Executed:
    k = len(workload.organizations)
    job, begin = schedule.job[entries], schedule.start[entries]
    owner, copies = schedule.owner[entries], schedule.copies[entries]
    end = begin + workload.processing_time[job]
    over = end <= t
    second = np.concatenate((begin, end[over])).astype(object)
    more = np.concatenate((copies, -copies[over])).astype(object)
    release = np.concatenate((workload.release[job], workload.release[job][over])).astype(object)
    of_job = np.concatenate((workload.organization[job], workload.organization[job][over]))
    of_owner = np.concatenate((owner, owner[over]))
    terms = np.stack((more, more * second, more * (second * (second - 1) // 2)), axis=1)
    of_release = np.stack((more * release, more * release * second), axis=1)
    found = [np.zeros((k, n), dtype=object) for n in (3, 3, 2, 2)]
    for sums, whose, what in zip(
        found,
        (of_job, of_owner, of_job, of_owner),
        (terms, terms, of_release, of_release),
        strict=True,
    ):
        np.add.at(sums, whose, what)
    served = int(workload.organization[job[-1]]) if len(job) else UNKNOWN
    return Executed(
        utility=found[0], contribution=found[1], released=np.stack(found[2:]), served=served
    )
