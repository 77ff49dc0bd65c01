"""By how much the accelerated clock of an arm was too fast for Slurm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.runs import run_of
from shapleyprio.lab.rehearsal.jobs import SiteJobs
from shapleyprio.lab.rehearsal.plan import SitePlan
from shapleyprio.lab.trial.executed import ExecutedWorkload, processors_held
from shapleyprio.lab.trial.numbering import records_by_job
from shapleyprio.lab.trial.running import Trace
from shapleyprio.replay.workloads.log import UNKNOWN

DOUBTFUL_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """What was late, in seconds of the cluster's clock.

    Attributes:
        submission: from release to submission, on average.
        start: from submission to start, of half of the jobs for which enough processors of their
            partition were idle all the time.
        prompt: how many such jobs there were.
        length: by how much longer than they should jobs lasted, on average.
    """

    submission: float
    start: float
    prompt: int
    length: float

    @property
    def doubtful(self) -> bool:
        """Whether the arm says less of the site than of this machine."""
        return max(self.submission, self.start, self.length) > DOUBTFUL_SECONDS


def worst(delays: Sequence[Delays]) -> Delays:
    """Returns the longest delays of several runs."""
    return Delays(
        submission=max(one.submission for one in delays),
        start=max(one.start for one in delays),
        prompt=max(one.prompt for one in delays),
        length=max(one.length for one in delays),
    )


def delays_of(jobs: SiteJobs, trace: Trace, executed: ExecutedWorkload) -> Delays:
    """Measures the delays of those jobs of an arm that count."""
    plan, counted = jobs.plan, jobs.counted
    starts = _prompt_starts(jobs, trace, executed)
    planned, ended = plan.workload.processing_time, executed.workload.processing_time
    end = executed.started + ended
    over = counted & (executed.started != UNKNOWN) & (end < plan.workload.window.length)
    longer: list[int] = (ended - planned)[over].tolist()
    arrived = counted & (executed.submitted != UNKNOWN)
    lags: list[int] = (executed.submitted - plan.workload.release)[arrived].tolist()
    return Delays(
        submission=fmean(lags) if lags else 0.0,
        start=median(starts) if starts else 0.0,
        prompt=len(starts),
        length=fmean(longer) if longer else 0.0,
    )


def _prompt_starts(jobs: SiteJobs, trace: Trace, executed: ExecutedWorkload) -> list[int]:
    plan = jobs.plan
    partitions = [job.partition for job in plan.jobs]
    known = (executed.started != UNKNOWN) & (executed.submitted != UNKNOWN)
    ran = np.flatnonzero(known & jobs.counted)
    found: list[int] = []
    for partition in dict.fromkeys(partitions):
        own = np.array([of == partition for of in partitions])
        short = _short_seconds(plan, trace, executed, partition, own)
        here = ran[own[ran]]
        submitted, started = executed.submitted[here].clip(0), executed.started[here]
        prompt = short[submitted] == short[started]
        found += (started - submitted)[prompt].tolist()
    return found


def _short_seconds(
    plan: SitePlan,
    trace: Trace,
    executed: ExecutedWorkload,
    partition: str,
    own: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Counts the seconds before each at which a job of a partition wanted more than was idle there.

    Returns:
        int64[window's length + 1].
    """
    length, nodes = plan.workload.window.length, plan.site.conf.partitions[partition].nodes
    change = np.zeros(length + 1, dtype=np.int64)
    for begin, end, processors in _held(plan, trace, frozenset(nodes), length):
        change[begin] -= processors
        change[end] += processors
    idle = sum(plan.sizes[node] for node in nodes) + change.cumsum()[:length]
    return executed.short_before(idle, own)


def _held(
    plan: SitePlan, trace: Trace, nodes: frozenset[str], length: int
) -> Sequence[tuple[int, int, int]]:
    """Returns from when to when how many processors of some nodes were held."""
    found = []
    for _, record in records_by_job(trace.records, trace.submitted):
        run = run_of(record, plan.sizes)
        if run is None:
            continue
        held = processors_held(record, plan.sizes, trace.held)
        inside = sum(processors for node, processors in held.items() if node in nodes)
        begin = min(max(run.begin - trace.begin, 0), length)
        end = length if run.end is None else min(run.end - trace.begin, length)
        found.append((begin, max(begin, end), inside))
    return found
