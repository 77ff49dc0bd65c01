"""How long jobs waited for their start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job of the demo.

    Attributes:
        account: whose.
        submit, start: seconds; start is None while it waits.
    """

    account: str
    submit: int
    start: int | None


def mean_wait(jobs: Iterable[Job], until: int) -> float:
    """Mean seconds from submission to start; a waiting job counts with its wait so far.

    Args:
        jobs: of whomever.
        until: now; on the clock of the jobs.

    >>> jobs = [Job(account="a", submit=0, start=10), Job(account="a", submit=5, start=None)]
    >>> mean_wait(jobs, until=25)
    15.0
    """
    waits = [(until if job.start is None else job.start) - job.submit for job in jobs]
    return fmean(max(wait, 0) for wait in waits) if waits else 0.0
