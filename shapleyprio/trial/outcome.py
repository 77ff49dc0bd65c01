"""What accounting tells of a trial, as a schedule that is measured like a replay's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.runs import UNFINISHED_STATES, JobRecord
from shapleyprio.replay.log import UNKNOWN
from shapleyprio.replay.measures import contributed
from shapleyprio.replay.schedule import Schedule
from shapleyprio.replay.workload import Workload

WELL = UNFINISHED_STATES | {"COMPLETED"}
"""States of jobs that went as they should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
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

    def faults(self) -> list[str]:
        """What makes the numbers doubtful, in words."""
        unwell = [f"{n} jobs are {s}" for s, n in self.states.items() if s not in WELL]
        missing = [f"{self.missing} jobs have no record"] if self.missing else []
        requeued = [f"{self.requeued} jobs ran more than once"] if self.requeued else []
        return [*missing, *requeued, *unwell]


def outcome_of(
    workload: Workload,
    records: Sequence[JobRecord],
    *,
    policy: str,
    job_ids: Mapping[int, int],
    begin: int,
    owners: Mapping[str, int],
    seed: int = 0,
) -> Outcome:
    """Turns records into a schedule.

    Jobs last a little longer on a cluster than they should, the more so on an accelerated clock.
    What counts as executed is what was executed; the workload that comes back says so.

    Args:
        workload: jobs of one processor each, as they should be.
        records: of these jobs.
        policy: what to call the schedule.
        job_ids: Slurm's number of a job -> its index in the workload.
        begin: of the window, on the cluster's clock.
        owners: node -> index of its organization.
        seed: of the workload.
    """
    last = _last_records(records, job_ids)
    count, length = len(workload.job), workload.window.length
    submitted, started = (np.full(count, UNKNOWN, dtype=np.int64) for _ in range(2))
    owner = np.full(count, UNKNOWN, dtype=np.int32)
    processing_time = workload.processing_time.copy()
    for job, record in last.items():
        submitted[job] = record.submit - begin
        if record.start is None or record.start - begin >= length:
            continue
        started[job] = record.start - begin
        owner[job] = next((owners[node] for node in record.processors if node in owners), UNKNOWN)
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
    times = Counter(job_ids[record.job_id] for record in records)
    return Outcome(
        workload=executed,
        schedule=replace(schedule, contribution=contribution),
        submitted=submitted,
        started=started,
        owner=owner,
        states=dict(sorted(Counter(record.state for record in last.values()).items())),
        missing=count - len(last),
        requeued=sum(number > 1 for number in times.values()),
    )


def _last_records(records: Sequence[JobRecord], job_ids: Mapping[int, int]) -> dict[int, JobRecord]:
    """Index of a job -> the record of its last execution, or of its wait."""
    return {job_ids[r.job_id]: r for r in sorted(records, key=lambda record: record.submit)}
