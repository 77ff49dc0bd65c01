"""What came out of a rehearsal: waits and fairness of each arm, and how far to trust its clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.runs import run_of
from shapleyprio.lab.rehearsal.arms import TODAY
from shapleyprio.lab.rehearsal.jobs import SiteJobs
from shapleyprio.lab.rehearsal.plan import SitePlan
from shapleyprio.lab.trial.executed import ExecutedWorkload, processors_held, records_by_job
from shapleyprio.lab.trial.report import executed_by, faults_of, held_against, simulated
from shapleyprio.lab.trial.running import Trace
from shapleyprio.replay.policies import RECORDED, REFERENCE
from shapleyprio.replay.policies.registry import MOST_FOR_REF
from shapleyprio.replay.results import Result, results_of
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
    known = jobs.counted & (executed.submitted != UNKNOWN)
    waited = executed.started - executed.submitted.clip(0)
    found: list[int] = []
    for partition in dict.fromkeys(partitions):
        own = np.array([of == partition for of in partitions])
        nodes = plan.site.conf.partitions[partition].nodes
        held = _held(plan, trace, frozenset(nodes), plan.workload.window.length)
        prompt = executed.prompt(sum(plan.sizes[node] for node in nodes), held, own)
        found += waited[prompt[known[prompt]]].tolist()
    return found


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


GROUPS = ("organization", "partition", "size", "account")
"""By which waits are shown."""

SIZES = ((1, "1 processor"), (15, "2 to 15"), (63, "16 to 63"), (255, "64 to 255"))
LARGEST = "256 or more"


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedRun:
    """What happened, or an arm, which may have been run several times.

    Attributes:
        name: of the arm, or `RECORDED`.
        each: of each time, float64[counted jobs]: seconds from release to start; so far if it has
            not started.
        result: of its schedule, held against Ref's if there are few enough organizations; of the
            first time.
        delays: by how much the clock was too fast, the worst time; None for what happened.
        trace: of the arm, the first time; None likewise.
        faults: what makes its numbers doubtful, in words.
    """

    name: str
    each: Sequence[NDArray[np.float64]]
    result: Result
    delays: Delays | None = None
    trace: Trace | None = None
    faults: Sequence[str] = ()

    @property
    def waits(self) -> NDArray[np.float64]:
        """How long each job that counts waited on average."""
        mean: NDArray[np.float64] = np.mean(self.each, axis=0)
        return mean


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRow:
    """Waits of a group of jobs.

    Attributes:
        name: of the group.
        jobs: how many it has.
        means: seconds, in each run.
        each: the means of each time, likewise.
    """

    name: str
    jobs: int
    means: Sequence[float]
    each: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came out.

    Attributes:
        jobs: that were rehearsed.
        fair: Ref's result for the jobs as they were; None with too many organizations.
        runs: what happened first, then the arms.
    """

    jobs: SiteJobs
    fair: Result | None
    runs: Sequence[RehearsedRun]

    def rows(self, group: str) -> list[WaitRow]:
        """Returns the waits by one of `GROUPS`; accounts and partitions with most jobs first."""
        names = np.array(list(names_of(self.jobs, group)))[self.jobs.counted]
        return [self._row(name, names == name) for name in _in_order(self.jobs, group, names)]

    @property
    def all_jobs(self) -> WaitRow:
        """Returns the waits of all jobs that count."""
        return self._row("all", np.ones(int(self.jobs.counted.sum()), dtype=np.bool_))

    def _row(self, name: str, chosen: NDArray[np.bool_]) -> WaitRow:
        return WaitRow(
            name=name,
            jobs=int(chosen.sum()),
            means=[float(run.waits[chosen].mean()) for run in self.runs],
            each=[[float(one[chosen].mean()) for one in run.each] for run in self.runs],
        )

    @property
    def trust(self) -> float | None:
        """By what part the mean wait of the arm `today` differs from what happened."""
        means = dict(zip((run.name for run in self.runs), self.all_jobs.means, strict=True))
        happened = means[RECORDED]
        return None if TODAY not in means or not happened else means[TODAY] / happened - 1


def answer_of(
    jobs: SiteJobs, traces: Sequence[Sequence[Trace]], *, seed: int, cores: int
) -> Answer:
    """Measures what happened and the arms.

    Args:
        jobs: that were rehearsed.
        traces: of each arm, each time that it was run.
        seed: of the fair schedule.
        cores: to compute it on.

    Raises:
        ReplayError: the fair schedule cannot be computed exactly.
    """
    workload = replace(jobs.plan.workload, start=jobs.started)
    few = len(workload.organizations) <= MOST_FOR_REF
    wanted = (REFERENCE, RECORDED) if few else (RECORDED,)
    *references, result = simulated(workload, seed=seed, cores=cores, policies=wanted)
    fair = references[0] if references else None
    recorded = RehearsedRun(name=RECORDED, each=[waits_of(jobs, jobs.started)], result=result)
    arms = [
        _together(
            [_arm(jobs, trace, seed=seed, cores=cores, fair=fair is not None) for trace in times]
        )
        for times in traces
    ]
    return Answer(jobs=jobs, fair=fair, runs=[recorded, *arms])


def _together(times: Sequence[RehearsedRun]) -> RehearsedRun:
    """Returns an arm of all times that it was run."""
    return replace(
        times[0],
        each=[wait for run in times for wait in run.each],
        delays=worst([run.delays for run in times if run.delays is not None]),
        faults=[fault for run in times for fault in run.faults],
    )


def _arm(jobs: SiteJobs, trace: Trace, *, seed: int, cores: int, fair: bool) -> RehearsedRun:
    executed = executed_by(jobs.plan, trace, seed=seed)
    if fair:
        (reference,) = simulated(executed.given, seed=seed, cores=cores, policies=(REFERENCE,))
        result = held_against(reference, executed)
    else:
        (result,) = results_of(executed.workload, [executed.schedule])
    delays = delays_of(jobs, trace, executed)
    late = [f"{trace.arm.name}: the clock was too fast for this machine"] * delays.doubtful
    return RehearsedRun(
        name=trace.arm.name,
        each=[waits_of(jobs, executed.started)],
        result=result,
        delays=delays,
        trace=trace,
        faults=[*faults_of(trace, executed, preempts=jobs.plan.preempts(trace.arm)), *late],
    )


def waits_of(jobs: SiteJobs, started: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns how long each job that counts waited, until the window's end if it did not start."""
    workload = jobs.plan.workload
    until = np.where(started == UNKNOWN, workload.window.length, started)
    waits: NDArray[np.float64] = (until - workload.release)[jobs.counted].clip(0).astype(float)
    return waits


def names_of(jobs: SiteJobs, group: str) -> Iterator[str]:
    """Yields for each job to which group of a kind it belongs."""
    workload = jobs.plan.workload
    if group == "organization":
        yield from (workload.organizations[u] for u in workload.organization.tolist())
    elif group == "size":
        yield from map(size_of, workload.processors.tolist())
    else:
        yield from (getattr(job, group) for job in jobs.plan.jobs)


def size_of(processors: int) -> str:
    """Returns the group of a job by its processors.

    >>> size_of(1), size_of(16), size_of(1152)
    ('1 processor', '16 to 63', '256 or more')
    """
    return next((name for most, name in SIZES if processors <= most), LARGEST)


def _in_order(jobs: SiteJobs, group: str, names: NDArray[np.str_]) -> list[str]:
    found, counts = np.unique(names, return_counts=True)
    present: Mapping[str, int] = dict(zip(found.tolist(), counts.tolist(), strict=True))
    known: Sequence[str] = {
        "organization": jobs.plan.workload.organizations,
        "size": (*(name for _, name in SIZES), LARGEST),
    }.get(group, sorted(present, key=lambda name: (-present[name], name)))
    return [name for name in known if name in present]
