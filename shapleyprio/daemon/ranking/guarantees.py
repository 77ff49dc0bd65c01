"""The pending jobs that go first because of their organization's guarantee."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from shapleyprio.common.wording import duration
from shapleyprio.daemon.pushing.lasting import Guaranteed
from shapleyprio.daemon.ranking.observation import Observation
from shapleyprio.daemon.ranking.observing import Observed
from shapleyprio.fairness.guarantee import EligibleJob, Freeing, Lent, guaranteed, has_waited
from shapleyprio.fairness.runs import Run
from shapleyprio.slurm.port import PendingJob
from shapleyprio.store import GUARANTEE, ExceptionRow

AHEAD = "; for its processors it may have to wait past its guarantee"


def guaranteed_jobs(
    observed: Observed, started: Collection[Run], guarantees: Mapping[str, int], *, ahead: bool
) -> Guaranteed:
    """Returns the jobs that go first, each with as long again to start.

    Args:
        observed: the cluster, as this cycle has observed.
        started: runs that were not known before.
        guarantees: organization -> seconds.
        ahead: whether jobs go first earlier, by as long as their processors may be held.
    """
    observation, demand = observed.observation, observed.demand
    running = {run.key.job_id for run in started}  # the queue may be read before they left it
    known = running.union(run.array_job_id for run in started)
    if not guarantees:
        return Guaranteed(jobs=(), parts=(), started=known)
    jobs = {job.job_id: job for job in demand.jobs if job.job_id not in running}
    uses, sharing = _uses(observation), _sharing(observation.partitions_of.values())
    lent = Lent({place: use.unused for place, use in uses.items()}, sharing)
    freeing = _freeing(observation) if ahead else {}
    eligible = _eligible(observed, jobs.values(), guarantees, ahead=ahead)
    first = guaranteed(observation.t, guarantees, lent, eligible, freeing)
    return Guaranteed(
        jobs=[
            _exception(jobs[one.job], one, uses, observation.t, guarantees)
            for one in first
            if one.tasks == jobs[one.job].tasks
        ],
        parts=[(jobs[one.job], one.tasks) for one in first if one.tasks < jobs[one.job].tasks],
        started=known,
    )


@dataclass(slots=True)
class _Use:
    """Processors of an organization in a partition."""

    used: int = 0
    brings: int = 0

    @property
    def unused(self) -> int:
        return self.brings - self.used


def _uses(observation: Observation) -> Mapping[tuple[str, str], _Use]:
    """Returns organization and partition -> what it uses and brings there, on nodes not closed."""
    found: defaultdict[tuple[str, str], _Use] = defaultdict(_Use)
    at_work: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, run in observation.at_work:
        for node_name, processors in run.processors.items():
            at_work[node_name][name] += processors
    for node in observation.nodes:
        partitions = () if node.closed else observation.partitions_of.get(node.name, ())
        for one in partitions:
            found[observation.owner(node), one].brings += node.tres.get(observation.tres, 0)
            for name, processors in at_work[node.name].items():
                found[name, one].used += processors
    return found


def _freeing(observation: Observation) -> Mapping[str, Freeing]:
    """Returns partition -> when its processors will be free, those on closed nodes left out."""
    tres = observation.tres
    free: Counter[str] = Counter()
    ends: defaultdict[str, list[tuple[int | None, int]]] = defaultdict(list)
    partitions_of = {
        node.name: observation.partitions_of.get(node.name, ())
        for node in observation.nodes
        if not node.closed
    }
    for node in observation.nodes:
        idle = node.tres.get(tres, 0) - node.allocated.get(tres, 0)
        free.update(dict.fromkeys(partitions_of.get(node.name, ()), idle))
    for _, run in observation.at_work:
        end = None if run.limit is None else run.begin + run.limit
        held: Counter[str] = Counter()
        for node_name, processors in run.processors.items():
            held.update(dict.fromkeys(partitions_of.get(node_name, ()), processors))
        for one, processors in held.items():
            ends[one].append((end, processors))
    return {one: Freeing(idle, ends[one]) for one, idle in free.items()}


def _sharing(bays: Iterable[tuple[str, ...]]) -> Mapping[str, frozenset[str]]:
    """Returns partition -> those with which it has nodes in common, of the partitions of nodes."""
    found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for names in set(bays):
        for name in names:
            found[name] |= frozenset(names)
    return found


def _eligible(
    observed: Observed, jobs: Iterable[PendingJob], guarantees: Mapping[str, int], *, ahead: bool
) -> Iterator[EligibleJob]:
    """Yields the jobs of organizations with guarantees that have waited long enough, or all."""
    organization_of = cache(observed.observation.organization_of_jobs_in)
    tasks, t = observed.demand.tasks, observed.observation.t
    for job in jobs:
        name, since = organization_of(job.account, job.partition), job.eligible or 0
        guarantee = guarantees.get(name)
        if guarantee is None:
            continue
        if ahead or has_waited(t, since, guarantee):
            yield EligibleJob(
                job=job.job_id,
                organization=name,
                since=since,
                processors=job.processors,
                tasks=tasks.get(job.job_id, job.tasks),
                partitions=tuple(job.partition.split(",")),
            )


def _exception(
    job: PendingJob,
    first: EligibleJob,
    uses: Mapping[tuple[str, str], _Use],
    t: int,
    guarantees: Mapping[str, int],
) -> ExceptionRow:
    name = first.organization
    places = [(one, uses[name, one]) for one in first.partitions if (name, one) in uses]
    partition, use = max(places, key=lambda place: place[1].unused)
    return ExceptionRow(
        job_id=job.job_id,
        since=t,
        label=job.label,
        organization=name,
        user=GUARANTEE,
        reason=f"{name} uses {use.used} of its {use.brings} processors in partition {partition}, "
        f"and the job has waited {duration(t - first.since)}"
        + ("" if has_waited(t, first.since, guarantees[name]) else AHEAD),
        before_all=True,
        until=t + guarantees[name],
    )
