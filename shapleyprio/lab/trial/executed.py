"""The outcome of a trial by accounting, as a schedule that is measured like a replay's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from ClusterShell.RangeSet import RangeSet
from numpy.typing import NDArray

from shapleyprio.fairness.runs import UNFINISHED_STATES, JobRecord, RunKey, run_of
from shapleyprio.lab.trial.plan import ClusterPlan
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.measures import contributed
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, RecordedProcessors
from shapleyprio.replay.workloads.workload import Workload

Submitted = Mapping[int, Sequence[int]]
"""Slurm's number of a job, or of an array -> indices into the workload, one for each task."""

_LABEL = re.compile(r"(\d+)(?:_(?:(\d+)|\[([\d,-]+)\]))?")


def records_by_job(
    records: Sequence[JobRecord], submitted: Submitted
) -> Iterator[tuple[int, JobRecord]]:
    """Pairs the workload's jobs with their records; a waiting array's one record is all its tasks'.

    Records of what was not submitted are passed over.

    Args:
        records: with labels as users know them: ``33``, ``33_4``, ``33_[5-9]``.
        submitted: what was submitted.

    Yields:
        index of a job, and a record of it.
    """
    for record in records:
        match = _LABEL.fullmatch(record.label)
        if match is None or (jobs := submitted.get(int(match[1]))) is None:
            continue
        if match[3] is not None:
            tasks = [int(task) for task in RangeSet(match[3])]
        else:
            tasks = [0 if match[2] is None else int(match[2])]
        yield from ((jobs[task], record) for task in tasks if task < len(jobs))


Held = Mapping[RunKey, Mapping[str, int]]
"""A run on several nodes -> node -> processors that it held there."""

EXPECTED_STATES = UNFINISHED_STATES | {"COMPLETED"}
"""States of jobs that did not fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedWorkload:
    """A workload as Slurm ran it.

    Attributes:
        workload: with the processing times that jobs really had, where they have ended.
        schedule: of the jobs that started in the window.
        submitted: int64[jobs], seconds from the window's begin; UNKNOWN without a record.
        started: int64[jobs], likewise; UNKNOWN if not in the window.
        states: state -> how many jobs ended, ran or waited in it.
        missing: how many jobs have no record.
        requeued: how many jobs have several records; the last one counts.
    """

    workload: Workload
    schedule: Schedule
    submitted: NDArray[np.int64]
    started: NDArray[np.int64]
    states: Mapping[str, int]
    missing: int
    requeued: int

    @property
    def count_started(self) -> int:
        """How many jobs started in the window."""
        return int(np.count_nonzero(self.started != UNKNOWN))

    @property
    def lags(self) -> NDArray[np.int64]:
        """Seconds from release to submission of each job that has a record."""
        known = np.flatnonzero(self.submitted != UNKNOWN)
        lags: NDArray[np.int64] = self.submitted[known] - self.workload.release[known]
        return lags

    @property
    def given(self) -> Workload:
        """The workload as Slurm got it: released when submitted, as long as it really ran.

        A job that started promptly has waited for Slurm, not for processors: it counts as released
        at its start. A job gets processors of the nodes that Slurm chose, as far as they are free.
        """
        release = np.where(self.submitted == UNKNOWN, self.workload.release, self.submitted)
        ran = self.started != UNKNOWN
        begin, processors = self.started[ran], self.workload.processors[ran]
        end = (begin + self.workload.processing_time[ran]).clip(max=self.workload.window.length)
        held = zip(begin.tolist(), end.tolist(), processors.tolist(), strict=True)
        prompt = self.prompt(int(self.workload.owned.sum()), held, np.ones_like(ran))
        release[prompt] = self.started[prompt]
        for u in range(len(self.workload.organizations)):
            own = self.workload.organization == u
            release[own] = np.maximum.accumulate(release[own])  # they were submitted in this order
        last = self.workload.window.length - 1
        return replace(
            self.workload, release=release.clip(0, last), placed=self.placed, placement="recorded"
        )

    @property
    def placed(self) -> RecordedProcessors:
        """Whose processors each job got."""
        schedule = self.schedule
        order = np.argsort(schedule.job, kind="stable")
        parts = np.bincount(schedule.job, minlength=len(self.workload.job))
        return RecordedProcessors(
            first=np.concatenate([[0], parts.cumsum()]),
            owners=Labels(schedule.owner[order], self.workload.organizations),
            processors=schedule.copies[order],
        )

    def prompt(
        self, processors: int, held: Iterable[tuple[int, int, int]], among: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Returns the jobs that started promptly.

        From their submission to their start, every job that waited had enough idle processors.

        Args:
            processors: of some nodes.
            held: from when to when, in seconds of the window, how many of them were not idle.
            among: bool[jobs], those that may have waited for them, and are looked at.

        Returns:
            int64[prompt jobs], their indices.
        """
        change = np.zeros(self.workload.window.length + 1, dtype=np.int64)
        for begin, end, count in held:
            change[begin] -= count
            change[end] += count
        idle = processors + change.cumsum()[:-1]
        wanted = np.zeros_like(idle)
        until = np.where(self.started == UNKNOWN, len(idle), self.started)
        for job in np.flatnonzero(among & (self.submitted != UNKNOWN)).tolist():
            waiting = wanted[max(self.submitted[job], 0) : until[job]]
            np.maximum(waiting, self.workload.processors[job], out=waiting)
        short_before = np.concatenate([[0], (wanted > idle).cumsum()])
        ran = np.flatnonzero(among & (self.started != UNKNOWN))
        submitted = self.submitted[ran].clip(0)
        prompt: NDArray[np.int64] = ran[short_before[submitted] == short_before[self.started[ran]]]
        return prompt

    def faults(self, *, preempts: bool) -> list[str]:
        """Returns what makes the numbers doubtful, in words.

        Args:
            preempts: whether jobs may be ended, and begin again, because of others.
        """
        expected = EXPECTED_STATES | ({"PREEMPTED"} if preempts else set())
        failed = [f"{n} jobs are {s}" for s, n in self.states.items() if s not in expected]
        missing = [f"{self.missing} jobs have no record"] if self.missing else []
        again = self.requeued and not preempts
        requeued = [f"{self.requeued} jobs ran more than once"] if again else []
        return [*missing, *requeued, *failed]


def executed_workload(
    plan: ClusterPlan,
    records: Sequence[JobRecord],
    *,
    policy: str,
    submitted: Submitted,
    begin: int,
    held: Held | None = None,
    seed: int = 0,
) -> ExecutedWorkload:
    """Turns records into a schedule.

    Jobs last a little longer on a cluster than they should, the more so on an accelerated clock.
    What counts as executed is what was executed; the workload that comes back says so.

    Args:
        plan: how the jobs were put on the cluster.
        records: of these jobs.
        policy: what to call the schedule.
        submitted: what Slurm knows these jobs as.
        begin: of the window, on the cluster's clock.
        held: what is known of jobs on several nodes; others' processors are split by the sizes of
            their nodes.
        seed: of the workload.
    """
    workload, owners, sizes = plan.workload, plan.owners, plan.sizes
    of_jobs = sorted(records_by_job(records, submitted), key=_execution)
    last = dict(of_jobs)
    count, length = len(workload.job), workload.window.length
    arrived, started = (np.full(count, UNKNOWN, dtype=np.int64) for _ in range(2))
    parts: list[tuple[int, int, int, int, int]] = []
    processing_time = workload.processing_time.copy()
    for job, record in last.items():
        arrived[job] = record.submit - begin
        if record.start is None or record.start - begin >= length:
            continue
        started[job] = record.start - begin
        place = int(workload.position[job])
        of_owners = Counter[int]()
        for node, processors in processors_held(record, sizes, held or {}).items():
            of_owners[owners.get(node, UNKNOWN)] += processors
        parts += ((started[job], place, job, *part) for part in of_owners.items())
        if record.end is not None and record.state not in UNFINISHED_STATES:
            processing_time[job] = record.elapsed
        else:
            processing_time[job] = max(processing_time[job], record.elapsed)
    executed = replace(workload, processing_time=processing_time)
    start, _, of_job, owner, copies = np.array(sorted(parts), dtype=np.int64).reshape(-1, 5).T
    schedule = Schedule(
        policy=policy,
        seed=seed,
        job=of_job,
        start=start,
        owner=owner.astype(np.int32),
        copies=copies,
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
        states=dict(sorted(Counter(record.state for record in last.values()).items())),
        missing=count - len(last),
        requeued=sum(number > 1 for number in times.values()),
    )


def processors_held(record: JobRecord, sizes: Mapping[str, int], held: Held) -> Mapping[str, int]:
    """Returns how many processors a job that started had on each node."""
    run = run_of(record, sizes)
    if run is None:
        return {"": max(record.processors, 1)}
    exact = held.get(run.key, run.processors)
    # slurmctld cuts long lists of processors short
    return exact if sum(exact.values()) == record.processors else run.processors


def _execution(of_job: tuple[int, JobRecord]) -> tuple[int, bool]:
    """Sorts a job's records: the last submission last, and of that what ran."""
    _, record = of_job
    return record.submit, record.start is not None
