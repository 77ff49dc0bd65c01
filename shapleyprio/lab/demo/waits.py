"""Times that jobs waited for their start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoJob:
    """A job of the demo.

    Attributes:
        account: whose.
        submit, start: seconds; start is None while it waits.
    """

    account: str
    submit: int
    start: int | None


def mean_wait(jobs: Iterable[DemoJob], until: int) -> float:
    """Returns mean seconds from submission to start; a waiting job counts with its wait so far.

    Args:
        jobs: of whomever.
        until: now; on the clock of the jobs.

    >>> started = DemoJob(account="a", submit=0, start=10)
    >>> mean_wait([started, DemoJob(account="a", submit=5, start=None)], until=25)
    15.0
    """
    waits = [(until if job.start is None else job.start) - job.submit for job in jobs]
    return fmean(max(wait, 0) for wait in waits) if waits else 0.0
