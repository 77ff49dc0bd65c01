"""Organizations alone: the workload that they would have, and finish-time fairness ρ against it.

Themis (Mahajan and others, NSDI 2020) divides the time that an application needs in the shared
cluster by the time that it would need in its own 1/N of it. Here an organization's own part is what
it brings, and the times are those of its jobs from release to end (flow times), summed before they
are divided: in a mean of the jobs' ratios one job of a second that waits for an hour would outweigh
a thousand others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.schedule import CoalitionValues, Schedule
from shapleyprio.replay.measures.measures import measure, sums
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.workload import Workload, jobs_of


def _jobs_alone(workload: Workload, members: Sequence[int]) -> NDArray[np.int64]:
    """Returns those jobs of some organizations that fit on the processors of these alone."""
    width = 1 if workload.wide == "expand" else workload.processors
    if workload.bays is None:
        room = workload.owned[list(members)].sum()
    else:
        room = workload.bays.of_members(members).processors[workload.bays.partition]
    return np.flatnonzero(np.isin(workload.organization, members) & (width <= room))


def workload_alone(
    workload: Workload, members: Sequence[int]
) -> tuple[NDArray[np.int64], Workload] | None:
    """Returns which jobs fit on the processors of some organizations, and the workload of these.

    It has the jobs and processors of these organizations alone, in the same window.

    Whose processors jobs really got is left out: part of them belonged to others.

    Args:
        workload: of the whole consortium.
        members: indices of the organizations, ascending.

    Returns:
        None if they have no processors, or no job that fits on them.
    """
    owned = workload.owned[list(members)]
    taken = _jobs_alone(workload, members)
    if len(taken) == 0:
        return None
    own = jobs_of(workload, taken)
    return taken, replace(
        own,
        organizations=tuple(workload.organizations[u] for u in members),
        owned=owned,
        organization=np.searchsorted(members, workload.organization[taken]).astype(np.int32),
        placed=None,
        bays=None if own.bays is None else own.bays.of_members(members),
    )


def with_singles(workload: Workload, sampled: CoalitionValues) -> CoalitionValues:
    """Adds every single organization that sampling missed; alone it has nothing to choose."""
    known = set(sampled.members.tolist())
    missing = [u for u in range(len(workload.organizations)) if 1 << u not in known]
    return CoalitionValues(
        members=np.append(sampled.members, [1 << u for u in missing]).astype(np.int64),
        values=np.append(
            sampled.values,
            np.array([_value(workload, u) for u in missing], dtype=sampled.values.dtype),
        ),
    )


def _value(workload: Workload, organization: int) -> int:
    alone = workload_alone(workload, [organization])
    if alone is None:
        return 0
    own = alone[1]
    return sum(measure(own, run_policy(own, "fcfs")).utilities)


NEVER_ALONE = -1
"""In place of the flow time of a job that could never run on its organization's processors."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishTimes:
    """How a schedule compares with each organization alone, at the window's end.

    Attributes:
        rho: the sum of the flow times of each organization's jobs, by that in the schedule that it
            would have alone, on its own processors; of those jobs that could run there. None where
            there are none, as without processors.
        never_alone: how many of each organization's jobs could not.
    """

    rho: tuple[Fraction | None, ...]
    never_alone: tuple[int, ...]

    @property
    def largest(self) -> Fraction | None:
        """The ρ of the organization that sharing served worst; None if no organization has one."""
        return max((rho for rho in self.rho if rho is not None), default=None)


def finish_times(workload: Workload, schedules: Sequence[Schedule]) -> tuple[FinishTimes, ...]:
    """Compares schedules of a workload with those of each organization alone.

    Raises:
        PolicyError: numbers may get larger than can be compared exactly.
    """
    count = len(workload.organizations)
    alone = flow_times_alone(workload)
    could = np.flatnonzero(alone != NEVER_ALONE)
    of_jobs, once = workload.organization[could], np.ones(len(could), dtype=np.int64)
    apart = sums(alone[could], once, of_jobs, count)
    never = np.bincount(workload.organization[alone == NEVER_ALONE], minlength=count)
    return tuple(
        FinishTimes(
            rho=tuple(
                Fraction(together, own) if own else None
                for together, own in zip(
                    sums(flow_times(workload, schedule)[could], once, of_jobs, count),
                    apart,
                    strict=True,
                )
            ),
            never_alone=tuple(never.tolist()),
        )
        for schedule in schedules
    )


def flow_times(workload: Workload, schedule: Schedule) -> Integers:
    """Returns the seconds from each job's release to its end, that of its last copy.

    What has not started at the window's end counts as if it started then.
    """
    length = workload.window.length
    seen = schedule.start < length
    job, start = schedule.job[seen], schedule.start[seen]
    begun = np.zeros_like(workload.processors)
    np.add.at(begun, job, schedule.copies[seen])
    wanted = 1 if workload.wide == "rigid" else workload.processors
    last = np.zeros_like(workload.release)
    np.maximum.at(last, job, start)
    until: Integers = np.where(begun < wanted, length, last)
    return until - workload.release + workload.processing_time


def flow_times_alone(workload: Workload) -> Integers:
    """Returns the flow time of each job if its organization were alone, or `NEVER_ALONE`.

    Its jobs are first come, first served then, wide ones and partitions as in the workload.
    """
    found = np.full(len(workload.job), NEVER_ALONE, dtype=np.int64)
    for u in range(len(workload.organizations)):
        alone = workload_alone(workload, [u])
        if alone is not None:
            jobs, own = alone
            found[jobs] = flow_times(own, run_policy(own, "fcfs"))
    return found
