"""The stage of the demo, real or simulated, and what the audience is shown of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Protocol

from shapleyprio.daemon.answering.status import OrganizationStatus, organization_rows
from shapleyprio.lab.demo.consortium import MEMBERS, Submission
from shapleyprio.slurm.port import Slurm
from shapleyprio.store import ClusterStore


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


class DemoError(Exception):
    """Something of the demo did not work as it must; the message says what."""


class Stage(Protocol):
    """A booted cluster on which the daemon steers and the workload arrives.

    Attributes:
        began: the cluster's clock when the first job was submitted.
        submitted: job id -> what was submitted so far.
        log: file of the daemon's log.
    """

    began: int
    log: Path
    submitted: dict[int, Submission]

    @property
    def slurm(self) -> Slurm:
        """The cluster, to put the priorities back."""

    def step(self) -> int:
        """Advances by a little time; returns the seconds since the start.

        Raises:
            TestbedError: the daemon has ended.
        """

    def stop_daemon(self) -> None:
        """Ends the daemon after its running cycle.

        Raises:
            TestbedError: it did not end well.
        """

    def stop(self) -> list[str]:
        """Ends everything, in whatever state it is; returns the processes left behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The store after some cycle.

    Attributes:
        began, t: the cluster's clock at the start and at that cycle.
        cycle: its number.
        written: priorities written since the start.
        failures: what the cycles that failed said.
        rows: the organizations, the first to be served first.
        jobs: all jobs submitted by then.
    """

    began: int
    t: int
    cycle: int
    written: int
    failures: tuple[str, ...]
    rows: tuple[OrganizationStatus, ...]
    jobs: tuple[DemoJob, ...]

    @property
    def elapsed(self) -> int:
        """Seconds since the start; the daemon's first cycle may come before it."""
        return max(self.t - self.began, 0)

    @property
    def starts(self) -> list[tuple[int, str]]:
        """Second and account of all jobs started so far, the first first."""
        started = [(job.start, job.account) for job in self.jobs if job.start is not None]
        return sorted(started, key=lambda start: start[0])

    @property
    def mean_waits(self) -> Mapping[str, float]:
        """Organization -> mean wait of its jobs in seconds."""
        return {
            member.name: mean_wait([j for j in self.jobs if j.account == member.name], self.t)
            for member in MEMBERS
        }


def watch(store: ClusterStore, stage: Stage, last: Snapshot | None = None) -> Snapshot | None:
    """Reads the store; None before the first cycle, and `last` if there was no other since."""
    with store.reading() as view:
        standings = view.history.latest_standings()
        if last is not None and standings[0].cycle == last.cycle:
            return last
        cycles = view.history.cycles(limit=100_000)
        keys = sorted(run.key for run, _ in view.runs.all_runs())
    if not standings:
        return None
    t = standings[0].t
    starts = {key.job_id: key for key in keys}
    jobs = []
    for job_id, submission in stage.submitted.items():
        key = starts.get(job_id)
        submit = stage.began + submission.second if key is None else key.submit
        if submit <= t:
            start = None if key is None else key.start
            jobs.append(DemoJob(account=submission.account, submit=submit, start=start))
    return Snapshot(
        began=stage.began,
        t=t,
        cycle=standings[0].cycle,
        written=sum(cycle.written for cycle in cycles),
        failures=tuple(cycle.message for cycle in reversed(cycles) if cycle.message),
        rows=organization_rows(standings),
        jobs=tuple(jobs),
    )
