"""Utility functions for Ref besides ψsp: those that ship, and how users' own are found.

A utility says what one organization has, at second t, from its own jobs in a schedule; more is
better. It gets all of the organization's jobs released by then, in the order in which they start,
and may look at what happened before t only: a job that runs has executed what it has by t. It
returns an integer or a fraction, for no float may decide anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple

from shapleyprio.fairness.utility import worth
from shapleyprio.replay.errors import UtilityError
from shapleyprio.replay.policies.loading import function_named


class JobTimes(NamedTuple):
    """A sequential job in an organization's schedule.

    Attributes:
        release: second from which it could start.
        start: second in which it started; None while it waits.
        processing_time: seconds it needs in all.
    """

    release: int
    start: int | None
    processing_time: int


Utility = Callable[[Sequence[JobTimes], int], int | Fraction]
"""(an organization's jobs, t) -> its utility at second t."""


def strategy_proof(jobs: Sequence[JobTimes], t: int) -> int:
    """Returns ψsp, the worth of all parts executed (SPAA 2013, Eq. 3).

    >>> strategy_proof([JobTimes(0, 0, 3), JobTimes(0, None, 5)], 13)
    36
    """
    return sum(
        worth(job.start, job.start + job.processing_time, t)
        for job in jobs
        if job.start is not None
    )


def flow_time(jobs: Sequence[JobTimes], t: int) -> int:
    """Returns minus the seconds that jobs have spent in the system by t, from release to end.

    A job that waits or runs has spent its time so far, so the value falls by 1 for each second
    and each job that is not done; what lies ahead counts when it has happened.

    >>> flow_time([JobTimes(0, 2, 3), JobTimes(4, None, 5)], 10)
    -11
    """
    return -sum(_end_or_now(job, t) - job.release for job in jobs)


def turnaround(jobs: Sequence[JobTimes], t: int) -> Fraction:
    """Returns minus the mean turnaround time by t: flow time per job released, 0 without jobs.

    >>> turnaround([JobTimes(0, 2, 3), JobTimes(4, None, 5)], 10)
    Fraction(-11, 2)
    """
    return Fraction(flow_time(jobs, t), max(len(jobs), 1))


def utilization(jobs: Sequence[JobTimes], t: int) -> int:
    """Returns the processor-seconds that the jobs have used by t.

    >>> utilization([JobTimes(0, 2, 3), JobTimes(4, 9, 5), JobTimes(4, None, 5)], 10)
    4
    """
    return sum(_end_or_now(job, t) - job.start for job in jobs if job.start is not None)


def _end_or_now(job: JobTimes, t: int) -> int:
    return t if job.start is None else min(job.start + job.processing_time, t)


UTILITIES: Mapping[str, Utility] = MappingProxyType(
    {
        "flow-time": flow_time,
        "turnaround": turnaround,
        "utilization": utilization,
        "strategy-proof": strategy_proof,
    }
)
"""Name, as in the policy ``ref:NAME`` -> utility."""


def utility_named(name: str) -> Utility:
    """Returns a utility that ships, or a user's own.

    Args:
        name: one of `UTILITIES`, or ``module:function``; modules are also looked for in the
            current directory.

    Raises:
        UtilityError: there is none, with what there is instead.
    """
    if name in UTILITIES:
        return UTILITIES[name]
    if ":" not in name:
        near = get_close_matches(name, UTILITIES, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(UTILITIES)}, and"
        raise UtilityError(f"utility {name!r} is unknown; {hint} module:function names your own")
    utility: Utility = function_named(
        name, kind="utility", example="utility:tardiness", error=UtilityError
    )
    return utility
