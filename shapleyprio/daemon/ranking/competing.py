"""Who competes for what at the end of a cycle, for forecasts of starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise

from shapleyprio.common.wording import DAY
from shapleyprio.daemon.forecasting.messages import (
    Closing,
    Competitor,
    ForecastRequest,
    KnownNode,
)
from shapleyprio.daemon.ranking.demand import Counted
from shapleyprio.daemon.ranking.observing import Observed
from shapleyprio.daemon.ranking.ranking import Ranked
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.layout import Reservation
from shapleyprio.slurm.port import PendingJob, Slurm, SlurmError, in_slurms_order
from shapleyprio.slurm.reasons import lack_of

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
            wait for nothing but the time at which they are to begin, for others to end, or for a
            maintenance; nor have those behind one of whose kind only so many may run.
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
    after = _dependencies(lacking, slurm)
    kept_back = _kept_back(observed.demand.jobs, lacking, place)
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
        | _dependent(observed, lacking, after)
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
                (job for job in waiting if job.job_id not in kept_back),
                key=lambda job: place[job.job_id],
            )
        ),
        overlap=overlap,
        parents={row.organization: row.parent for row in ranked.standings if row.parent},
        after=after,
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


def _kept_back(
    counting: Iterable[PendingJob], lacking: Iterable[PendingJob], place: Mapping[int, int]
) -> frozenset[int]:
    """Returns the jobs that will meet a limit that one ahead of them has met.

    Slurm calls no limit the reason of a job that its scheduler has not looked at.

    Args:
        counting: jobs that lack nothing, for all that Slurm says.
        lacking: jobs that lack something.
        place: of each job in Slurm's order.
    """

    def kind(job: PendingJob) -> tuple[str, ...]:
        return job.account, job.user, job.qos, job.partition

    first: dict[tuple[str, ...], int] = {}
    for job in lacking:
        if lack_of(job.reason).of_jobs:
            first[kind(job)] = min(place[job.job_id], first.get(kind(job), place[job.job_id]))
    if not first:
        return frozenset()
    return frozenset(
        job.job_id
        for job in counting
        if place[job.job_id] > first.get(kind(job), place[job.job_id])
    )


def _dependencies(lacking: Iterable[PendingJob], slurm: Slurm) -> Mapping[int, tuple[int, ...]]:
    """Returns on which others jobs depend that wait for nothing else; nothing if Slurm is away."""
    waiting = (job for job in lacking if lack_of(job.reason).missing == "dependency")
    dependent = [job.job_id for job in islice(waiting, MOST_DEPENDENT)]
    try:
        return slurm.dependencies(dependent) if dependent else {}
    except SlurmError:
        return {}


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


def _dependent(
    observed: Observed, lacking: Iterable[PendingJob], after: Mapping[int, object]
) -> dict[int, Counted]:
    """Returns the dependent jobs, as they will count; when, nobody knows."""
    return {
        job.job_id: _counted(observed, job, job.submit) for job in lacking if job.job_id in after
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
