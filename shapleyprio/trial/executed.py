"""The outcome of a trial by accounting, as a schedule that is measured like a replay's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.runs import UNFINISHED_STATES, JobRecord
from shapleyprio.replay.log import UNKNOWN, Labels, RecordedProcessors
from shapleyprio.replay.measures import contributed
from shapleyprio.replay.schedule import Schedule
from shapleyprio.replay.workload import Workload
from shapleyprio.trial.numbering import Submitted, records_by_job
from shapleyprio.trial.plan import owners_of

WELL = UNFINISHED_STATES | {"COMPLETED"}
"""States of jobs that went as they should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedWorkload:
    """A workload as Slurm ran it.

    Attributes:
        workload: with the processing times that jobs really had, where they have ended.
        schedule: of the jobs that started in the window.
        submitted: int64[jobs], seconds from the window's begin; UNKNOWN without a record.
        started: int64[jobs], likewise; UNKNOWN if not in the window.
        owner: int32[jobs], whose processor each got; UNKNOWN if none.
        states: state -> how many jobs ended, ran or waited in it.
        missing: how many jobs have no record.
        requeued: how many jobs have several records; the last one counts.
    """

    workload: Workload
    schedule: Schedule
    submitted: NDArray[np.int64]
    started: NDArray[np.int64]
    owner: NDArray[np.int32]
    states: Mapping[str, int]
    missing: int
    requeued: int

    @property
    def lags(self) -> NDArray[np.int64]:
        """Seconds from release to submission of each job that has a record."""
        known = np.flatnonzero(self.submitted != UNKNOWN)
        lags: NDArray[np.int64] = self.submitted[known] - self.workload.release[known]
        return lags

    @property
    def given(self) -> Workload:
        """The workload as Slurm got it: released when submitted, as long as it really ran.

        A job that started while processors had been idle ever since its submission has waited for
        Slurm, not for a processor: it counts as released at its start. A job gets a processor of
        the node that Slurm chose, if one is free.
        """
        release = np.where(self.submitted == UNKNOWN, self.workload.release, self.submitted)
        ran = np.flatnonzero(self.started != UNKNOWN)
        full_before = self._full_seconds()
        submitted, started = self.submitted[ran].clip(0), self.started[ran]
        prompt = full_before[submitted] == full_before[started]
        release[ran[prompt]] = started[prompt]
        for u in range(len(self.workload.organizations)):
            own = self.workload.organization == u
            release[own] = np.maximum.accumulate(release[own])  # they were submitted in this order
        last = self.workload.window.length - 1
        known = self.owner != UNKNOWN
        placed = RecordedProcessors(
            first=np.concatenate([[0], known.cumsum()]),
            owners=Labels(self.owner[known], self.workload.organizations),
            processors=np.ones(known.sum(), dtype=np.int64),
        )
        return replace(
            self.workload, release=release.clip(0, last), placed=placed, placement="recorded"
        )

    def _full_seconds(self) -> NDArray[np.int64]:
        """Counts the seconds without an idle processor before each: int64[window's length + 1]."""
        length, ran = self.workload.window.length, np.flatnonzero(self.started != UNKNOWN)
        begin = self.started[ran]
        end = np.minimum(begin + self.workload.processing_time[ran], length)
        changes = np.bincount(begin, minlength=length + 1) - np.bincount(end, minlength=length + 1)
        full = changes.cumsum()[:length] >= self.workload.owned.sum()
        return np.concatenate([[0], full.cumsum()])

    def faults(self) -> list[str]:
        """Returns what makes the numbers doubtful, in words."""
        unwell = [f"{n} jobs are {s}" for s, n in self.states.items() if s not in WELL]
        missing = [f"{self.missing} jobs have no record"] if self.missing else []
        requeued = [f"{self.requeued} jobs ran more than once"] if self.requeued else []
        return [*missing, *requeued, *unwell]


def executed_workload(
    workload: Workload,
    records: Sequence[JobRecord],
    *,
    policy: str,
    submitted: Submitted,
    begin: int,
    seed: int = 0,
) -> ExecutedWorkload:
    """Turns records into a schedule.

    Jobs last a little longer on a cluster than they should, the more so on an accelerated clock.
    What counts as executed is what was executed; the workload that comes back says so.

    Args:
        workload: jobs of one processor each, as they should be.
        records: of these jobs.
        policy: what to call the schedule.
        submitted: what Slurm knows these jobs as.
        begin: of the window, on the cluster's clock.
        seed: of the workload.
    """
    owners = owners_of(workload)
    of_jobs = sorted(records_by_job(records, submitted), key=_execution)
    last = dict(of_jobs)
    count, length = len(workload.job), workload.window.length
    arrived, started = (np.full(count, UNKNOWN, dtype=np.int64) for _ in range(2))
    owner = np.full(count, UNKNOWN, dtype=np.int32)
    processing_time = workload.processing_time.copy()
    for job, record in last.items():
        arrived[job] = record.submit - begin
        if record.start is None or record.start - begin >= length:
            continue
        started[job] = record.start - begin
        owner[job] = next((owners[node] for node in record.nodes if node in owners), UNKNOWN)
        if record.end is not None and record.state not in UNFINISHED_STATES:
            processing_time[job] = record.elapsed
        else:
            processing_time[job] = max(processing_time[job], record.elapsed)
    executed = replace(workload, processing_time=processing_time)
    order = np.flatnonzero(started != UNKNOWN)
    order = order[np.lexsort((workload.position[order], started[order]))]
    schedule = Schedule(
        policy=policy,
        seed=seed,
        job=order,
        start=started[order],
        owner=owner[order],
        copies=np.ones_like(order),
        contribution=None,
        seconds=0.0,
    )
    contribution = tuple(map(Fraction, contributed(executed, schedule)))
    times = Counter(job for job, _ in {(job, record.submit) for job, record in of_jobs})
    return ExecutedWorkload(
        workload=executed,
        schedule=replace(schedule, contribution=contribution),
        submitted=arrived,
        started=started,
        owner=owner,
        states=dict(sorted(Counter(record.state for record in last.values()).items())),
        missing=count - len(last),
        requeued=sum(number > 1 for number in times.values()),
    )


def _execution(of_job: tuple[int, JobRecord]) -> tuple[int, bool]:
    """Sorts a job's records: the last submission last, and of that what ran."""
    _, record = of_job
    return record.submit, record.start is not None
