"""What an organization gains by the way in which it presents its work, in whole schedules.

ψsp itself is strategy-proof (SPAA 2013, Theorem 4.1): parts that are executed at the same time are
worth the same, however they are cut into jobs, and less if later. What a policy then decides is
another question: a schedule is full of chances, and some of what is changed changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shapleyprio.lab.bench.fairness.contended import ContendedWindow, WindowKind, collected
from shapleyprio.lab.bench.measure import BenchParameters, Measurement, mean_of
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import COMPARED, LIVE, Estimation, run_policy
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload, jobs_of

Ints = NDArray[np.int64]

MEASURED_LOGS = ("HPC2N", "RICC")
"""Those with time limits that users chose."""

ORGANIZATIONS = 5
WINDOWS = 4

MERGED_WITHIN = 3600
"""Seconds within which jobs are released that one would merge."""

IDLE = 960
"""Seconds without a job of one's own after which a phantom is released."""

PHANTOM_LIMIT = 864_000
"""Seconds that it asks for."""

LONG = 3600
"""Seconds from which a job is worth training the predictor for."""

TRAINERS = 20
"""As many of a user's last jobs count for the prediction of the next one."""


@dataclass(frozen=True, slots=True)
class Presented:
    """Work as an organization presents it.

    Attributes:
        workload: with its jobs as presented.
        useful: int64[jobs], seconds of each job that do something useful, the first ones.
    """

    workload: Workload
    useful: Ints


Presentation = Callable[[Workload, int], Presented]
"""Workload, index of the organization that presents its work so."""


def honestly(workload: Workload, organization: int) -> Presented:  # noqa: ARG001
    """Presents jobs as they are."""
    return Presented(workload, workload.processing_time)


def as_copies(workload: Workload, organization: int) -> Presented:
    """Cuts jobs of several processors into sequential ones."""
    ours = workload.organization == organization
    copies = np.where(ours, workload.processors, 1)
    jobs = np.repeat(np.arange(len(copies)), copies)
    return _presented(workload, jobs, processors=np.where(ours, 1, workload.processors)[jobs])


def in_halves(workload: Workload, organization: int) -> Presented:
    """Cuts jobs in two, the second half being released when the first could have ended."""
    whole = workload.processing_time
    cut = (workload.organization == organization) & (whole > 1)
    jobs = np.repeat(np.arange(len(whole)), np.where(cut, 2, 1))
    second = np.concatenate(([False], jobs[1:] == jobs[:-1]))
    first_half = (whole[jobs] + 1) // 2
    seconds = np.where(second, whole[jobs] // 2, np.where(cut[jobs], first_half, whole[jobs]))
    limit = workload.limit[jobs]
    return _presented(
        workload,
        jobs,
        release=workload.release[jobs] + np.where(second, first_half, 0),
        processing_time=seconds,
        limit=np.where(cut[jobs] & (limit != UNKNOWN), (limit + 1) // 2, limit),
    )


def merged(workload: Workload, organization: int) -> Presented:
    """Puts pairs of jobs of a user together that need as many processors and come soon after."""
    last: dict[tuple[int, int], int] = {}
    first, second = [], []
    user = np.zeros(len(workload.job)) if workload.history is None else workload.history.user
    for job in np.flatnonzero(workload.organization == organization).tolist():
        alike = int(user[job]), int(workload.processors[job])
        before = last.pop(alike, None)
        if before is None or workload.release[job] > workload.release[before] + MERGED_WITHIN:
            last[alike] = job
        else:
            first.append(before)
            second.append(job)
    kept = np.delete(np.arange(len(workload.job)), first)
    seconds, limit = workload.processing_time.copy(), workload.limit.copy()
    seconds[second] += workload.processing_time[first]
    limits = (limit[first] != UNKNOWN) & (limit[second] != UNKNOWN)
    limit[second] = np.where(limits, limit[first] + limit[second], UNKNOWN)
    return _presented(workload, kept, processing_time=seconds[kept], limit=limit[kept])


def delayed(seconds: int) -> Presentation:
    """Returns what releases all jobs so much later."""

    def present(workload: Workload, organization: int) -> Presented:
        later = np.where(workload.organization == organization, seconds, 0)
        jobs = np.arange(len(workload.job))
        return _presented(workload, jobs, release=workload.release + later)

    return present


def padded(percent: int) -> Presentation:
    """Returns what lets jobs go on for longer than is useful, by so many per cent."""

    def present(workload: Workload, organization: int) -> Presented:
        ours = workload.organization == organization

        def longer(seconds: Ints) -> Ints:
            return seconds - (-seconds * percent) // 100

        known = ours & (workload.limit != UNKNOWN)
        return _presented(
            workload,
            np.arange(len(workload.job)),
            processing_time=np.where(
                ours, longer(workload.processing_time), workload.processing_time
            ),
            limit=np.where(known, longer(workload.limit), workload.limit),
            useful=workload.processing_time,
        )

    return present


def with_phantoms(times: int) -> Presentation:
    """Returns what adds useless jobs that are cancelled when they start.

    They need so many times all processors and ask for ten days. Each time that the organization
    has submitted nothing for some minutes, one that was held is released, of a user without past.
    """

    def present(workload: Workload, organization: int) -> Presented:
        ours = np.flatnonzero(workload.organization == organization)
        release = workload.release[ours]
        idle = np.diff(release, append=workload.window.length) > IDLE
        presented = _with_useless(
            workload,
            ours[idle],
            release=release[idle] + IDLE,
            processors=times * workload.system_processors,
            limit=PHANTOM_LIMIT,
        )
        history = presented.workload.history
        if history is not None:
            user = np.where(presented.useful > 0, history.user, UNKNOWN)
            history = replace(history, user=user)
        return replace(presented, workload=replace(presented.workload, history=history))

    return present


def trained(workload: Workload, organization: int) -> Presented:
    """Lets users run sequential jobs of a second, with the same limit, before each long job."""
    long = (workload.organization == organization) & (workload.processing_time >= LONG)
    beside = np.repeat(np.flatnonzero(long), TRAINERS)
    return _with_useless(
        workload,
        beside,
        release=workload.release[beside],
        processors=1,
        limit=workload.limit[beside],
    )


def _with_useless(
    workload: Workload, beside: Ints, *, release: Ints, processors: int, limit: Ints | int
) -> Presented:
    """Adds useless jobs of a second, each of the user of another job, and if need be before it."""

    def added(value: Ints | int, column: Ints) -> Ints:
        return np.concatenate((np.broadcast_to(value, len(beside)), column))

    return _presented(
        workload,
        added(beside, np.arange(len(workload.job))),
        release=added(release, workload.release),
        processing_time=added(1, workload.processing_time),
        processors=added(processors, workload.processors),
        limit=added(limit, workload.limit),
        useful=added(0, workload.processing_time),
    )


def with_limits(times: int) -> Presentation:
    """Returns what asks for so many times the limit; 0: for what the job will really take."""

    def present(workload: Workload, organization: int) -> Presented:
        ours = (workload.organization == organization) & (workload.limit != UNKNOWN)
        asked = workload.limit * times if times else workload.processing_time
        jobs = np.arange(len(workload.job))
        return _presented(workload, jobs, limit=np.where(ours, asked, workload.limit))

    return present


def _presented(
    workload: Workload,
    jobs: Ints,
    *,
    release: Ints | None = None,
    processing_time: Ints | None = None,
    processors: Ints | None = None,
    limit: Ints | None = None,
    useful: Ints | None = None,
) -> Presented:
    """Returns some jobs of a workload, any of them often, with other columns."""
    release = workload.release[jobs] if release is None else release
    seconds = workload.processing_time[jobs] if processing_time is None else processing_time
    processors = workload.processors[jobs] if processors is None else processors
    limit = workload.limit[jobs] if limit is None else limit
    useful = seconds if useful is None else useful
    organization, position = workload.organization[jobs], workload.position[jobs]
    order = np.lexsort((position, release, organization))
    order = order[release[order] < workload.window.length]
    presented = replace(
        jobs_of(workload, jobs[order]),
        release=release[order],
        processing_time=seconds[order],
        processors=processors[order],
        limit=limit[order],
        start=np.full(len(order), UNKNOWN, dtype=np.int64),
        placed=None,
    )
    return Presented(presented, useful[order])


OF_WORK: Mapping[str, Presentation] = {
    "in single copies": as_copies,
    "in halves": in_halves,
    "in merged pairs": merged,
    "10 minutes later": delayed(600),
    "padded by 20 %": padded(20),
    "with phantoms as wide as all": with_phantoms(1),
    "with phantoms twice as wide": with_phantoms(2),
    "long jobs after short ones": trained,
}
OF_LIMITS: Mapping[str, Presentation] = {
    "twice the limits": with_limits(2),
    "ten times the limits": with_limits(10),
    "tight limits": with_limits(0),
}


TRIED: Mapping[str, Mapping[str, Presentation]] = {
    **dict.fromkeys(COMPARED, OF_WORK),
    LIVE: {**OF_WORK, **OF_LIMITS},
}
"""Policy -> what is tried on it."""


def utility_of(
    presented: Presented, organization: int, policy: str, *, estimation: Estimation
) -> int:
    """Returns ψ of what is useful of an organization's work, in part-seconds."""
    schedule = run_policy(presented.workload, policy, estimation=estimation)
    useful = replace(presented.workload, processing_time=presented.useful)
    return measure(useful, schedule).utilities[organization]


def measure_manipulations(asked: BenchParameters) -> Iterator[Measurement]:
    """Measures what organizations gain by presenting their work otherwise, one at a time.

    Jobs are kept whole, with easy backfilling.

    Yields:
        by log, presentation and policy the mean gain in seconds per part of the organization's
        own work, and how many of a hundred gain.
    """
    kinds = {"": WindowKind(organizations=ORGANIZATIONS, windows=WINDOWS, whole=True)}
    by_log = collected(asked, MEASURED_LOGS, kinds, _gains_in)
    for log, (presentation, name), found in by_log:
        what = f"{log}, {presentation}"
        yield mean_of(name, f"{what}: mean gain", found, unit="s per part")
        gaining = [100.0 * (gain > 0) for gain in found]
        yield mean_of(name, f"{what}: organizations that gain", gaining, unit="%")


def _gains_in(window: ContendedWindow) -> Iterator[tuple[tuple[str, str], float]]:
    """Yields by presentation and policy what organizations gain, if they had work done honestly."""
    workload, estimation = window.workload, Estimation()
    for policy, presentations in TRIED.items():
        honest = measure(workload, run_policy(workload, policy, estimation=estimation))
        for u, parts in enumerate(honest.parts):
            if parts == 0:
                continue
            for name, present in presentations.items():
                found = utility_of(present(workload, u), u, policy, estimation=estimation)
                yield (name, policy), (found - honest.utilities[u]) / parts
