"""Who competes for what at the end of a cycle, for forecasts of starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from shapleyprio.common.wording import DAY
from shapleyprio.daemon.estimation.known_runs import user_in_account
from shapleyprio.daemon.forecasting.messages import (
    Closing,
    Competitor,
    ForecastRequest,
    KnownNode,
    MetLimit,
)
from shapleyprio.daemon.ranking.demand import Counted
from shapleyprio.daemon.ranking.observing import Observed
from shapleyprio.daemon.ranking.ranking import Ranked
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.layout import Reservation
from shapleyprio.slurm.port import PendingJob, Slurm, SlurmError, in_slurms_order
from shapleyprio.slurm.reasons import SharedBy, lack_of

SOON_SECONDS = DAY
"""Jobs that are to begin later have no forecast: futures would take as long."""

NOT_AVAILABLE = "ReqNodeNotAvail"
"""So begin the reasons of jobs that no node may take now."""

MOST_DEPENDENT = 10_000
"""Jobs of which it is asked on which others they depend, at most: Linux takes 128 KiB at once."""


def competition(observed: Observed, ranked: Ranked, overlap: int, slurm: Slurm) -> ForecastRequest:
    """Returns what forecasts go by.

    Args:
        observed: the cluster as it is; jobs that do not count have no forecast, but for those that
            wait for nothing but the time at which they are to begin, for others to end, for a
            maintenance, or for a limit of which one knows who shares it.
        ranked: the organizations.
        overlap: seconds of accounting that every cycle reads again.
        slurm: is asked for reservations, and on which others jobs depend; what it does not answer
            is left out.
    """
    observation = observed.observation
    names = [row.organization for row in ranked.standings]
    owners = {name: number for number, name in enumerate((*names, NOBODY))}
    place = {
        job.job_id: number
        for number, job in enumerate(sorted(observation.pending, key=in_slurms_order))
    }
    lacking = [job for job in observation.pending if not job.waits_for_its_turn]
    after = _dependencies(observation.pending, lacking, slurm)
    limits = _limits(observed.demand.jobs, lacking, place)
    reservations = _reservations(slurm)
    reserved = {
        name for one in reservations if one.begin <= observation.t < one.end for name in one.nodes
    }
    busy = {node.name: node.allocated.get(observation.tres, 0) for node in observation.nodes}
    processors = {
        node.name: busy[node.name] if node.name in reserved else node.usable(observation.tres)
        for node in observation.nodes
    }
    partitions = {
        name: found
        for name, found in observation.partitions_of.items()
        if found and processors.get(name)
    }
    closings = _closings(
        reservations,
        {name: found for name, found in partitions.items() if name not in reserved},
        observation.t,
    )
    waiting = observation.counting_jobs(
        observed.demand.counting()
        | _beginning(observed, lacking)
        | _behind_others(observed, lacking, after)
        | _closed_out(observed, lacking, closings)
    )
    bays = sorted(set(partitions.values()), key=lambda found: (len(found), found))
    number_of = {found: number for number, found in enumerate(bays)}
    return ForecastRequest(
        t=observation.t,
        rule=ranked.rule,
        competitors=(
            *(Competitor(name, ranked.trajectories[name]) for name in names),
            Competitor(NOBODY, None),
        ),
        bays=tuple(bays),
        nodes={
            name: KnownNode(
                owner=owners.get(
                    observation.tenures.holder("node", name, observation.t), len(names)
                ),
                bay=number_of[found],
                processors=processors[name],
                busy=busy[name],
            )
            for name, found in partitions.items()
        },
        waiting=tuple(
            sorted(
                (job for job in waiting if job.job_id not in limits.unknown),
                key=lambda job: place[job.job_id],
            )
        ),
        overlap=overlap,
        parents={row.organization: row.parent for row in ranked.standings if row.parent},
        after=after,
        met_limits=limits.known,
        closings=closings,
    )


def _closings(
    reservations: Sequence[Reservation], partitions_of: Mapping[str, Sequence[str]], t: int
) -> dict[str, tuple[Closing, ...]]:
    """Returns when partitions will have no node for jobs.

    Args:
        reservations: of whole nodes.
        partitions_of: node on which jobs may start now -> the partitions that it is in.
        t: now.
    """
    nodes_in: dict[str, set[str]] = {}
    for node, names in partitions_of.items():
        for name in names:
            nodes_in.setdefault(name, set()).add(node)
    found = {}
    for name, nodes in nodes_in.items():
        here = [one for one in reservations if one.begin > t and not nodes.isdisjoint(one.nodes)]
        seconds = sorted({second for one in here for second in (one.begin, one.end)})
        closings = tuple(
            Closing(begin, end)
            for begin, end in pairwise(seconds)
            if nodes.issubset(
                node for one in here if one.begin <= begin and end <= one.end for node in one.nodes
            )
        )
        if closings:
            found[name] = closings
    return found


def _counted(observed: Observed, job: PendingJob, since: int) -> Counted:
    tasks = min(job.tasks, job.at_once or job.tasks)
    return Counted(since, tasks, observed.demand.rooms.widest(job.partition))


@dataclass(frozen=True, slots=True)
class _Limits:
    """Jobs that limits keep back.

    Attributes:
        known: those of which one knows by whom the limit is shared.
        unknown: the numbers of others that do not seem to lack anything.
    """

    known: tuple[MetLimit, ...] = ()
    unknown: frozenset[int] = frozenset()


def _limits(
    counting: Iterable[PendingJob], lacking: Iterable[PendingJob], place: Mapping[int, int]
) -> _Limits:
    """Returns the jobs that meet limits, and those that will meet the one that one ahead has met.

    Slurm calls no limit the reason of a job that its scheduler has not looked at.

    Args:
        counting: jobs that lack nothing, for all that Slurm says.
        lacking: jobs that lack something.
        place: of each job in Slurm's order.
    """

    def kind(job: PendingJob) -> tuple[str, ...]:
        return job.account, job.user, job.qos, job.partition

    met = [job for job in lacking if lack_of(job.reason).missing == "limit"]
    met.sort(key=lambda job: place[job.job_id])
    if not met:
        return _Limits()
    first: dict[tuple[str, ...], PendingJob] = {}
    jobs: dict[MetLimit, list[PendingJob]] = {}
    unknown = set()
    for job in met:
        if lack_of(job.reason).of_jobs:
            first.setdefault(kind(job), job)
        if limit := _limit(job):
            jobs.setdefault(limit, []).append(job)
    for job in counting:
        ahead = first.get(kind(job))
        if ahead is not None and place[ahead.job_id] < place[job.job_id]:
            if limit := _limit(ahead):
                jobs[limit].append(job)
            else:
                unknown.add(job.job_id)
    known = (
        limit._replace(jobs=tuple(sorted((job.job_id for job in here), key=place.__getitem__)))
        for limit, here in jobs.items()
    )
    return _Limits(tuple(known), frozenset(unknown))


def _limit(job: PendingJob) -> MetLimit | None:
    """Returns the limit that a job meets, without jobs; None if one does not know who shares it."""
    lack = lack_of(job.reason)
    by_processors = not (lack.of_jobs or lack.shared_by is SharedBy.ARRAY)
    match lack.shared_by:
        case None:
            return None
        case SharedBy.USER:
            name = user_in_account(job.user, job.account)
        case SharedBy.ACCOUNT:
            name = job.account
        case SharedBy.ARRAY:
            name = str(job.array_job_id)
    return MetLimit((), lack.shared_by, name, by_processors)


def _dependencies(
    pending: Iterable[PendingJob], lacking: Iterable[PendingJob], slurm: Slurm
) -> Mapping[int, tuple[int, ...]]:
    """Returns on which others jobs depend that wait for nothing else; nothing if Slurm is away.

    Those are left out that depend on arrays of which not all tasks may run at once: of these only
    so many tasks are foreseen as may.
    """
    waiting = (job for job in lacking if lack_of(job.reason).missing == "dependency")
    dependent = [job.job_id for job in islice(waiting, MOST_DEPENDENT)]
    if not dependent:
        return {}
    bounded = {job.job_id for job in pending if (job.at_once or job.tasks) < job.tasks}
    try:
        found = slurm.dependencies(dependent)
    except SlurmError:
        return {}
    return {job: others for job, others in found.items() if bounded.isdisjoint(others)}


def _reservations(slurm: Slurm) -> Sequence[Reservation]:
    try:
        return slurm.reservations()
    except SlurmError:
        return ()


def _closed_out(
    observed: Observed, lacking: Iterable[PendingJob], closings: Mapping[str, object]
) -> dict[int, Counted]:
    """Returns the jobs that wait since their limits reach into a closing, as they will count."""
    return {
        job.job_id: found
        for job in lacking
        if job.reason.startswith(NOT_AVAILABLE)
        and lack_of(job.reason).missing == "reservation"
        and (found := _counted(observed, job, job.submit)).partition in closings
    }


def _behind_others(
    observed: Observed, lacking: Iterable[PendingJob], after: Mapping[int, object]
) -> dict[int, Counted]:
    """Returns the jobs for which others have to end first, as they will count; when, nobody knows.

    They depend on these, or meet a limit of which one knows who shares it.
    """
    return {
        job.job_id: _counted(observed, job, job.submit)
        for job in lacking
        if job.job_id in after or lack_of(job.reason).shared_by
    }


def _beginning(observed: Observed, lacking: Iterable[PendingJob]) -> dict[int, Counted]:
    """Returns the jobs that only wait for a time at which they are to begin, as they will count."""
    latest = observed.observation.t + SOON_SECONDS
    return {
        job.job_id: _counted(observed, job, job.eligible)
        for job in lacking
        if lack_of(job.reason).missing == "time"
        and job.eligible is not None
        and job.eligible <= latest
    }
