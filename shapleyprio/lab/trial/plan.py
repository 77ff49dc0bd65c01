"""The plan of a trial: a workload as jobs of a private Slurm that its organizations own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.errors import Remedy
from shapleyprio.lab.testbed.configuration import LONGEST_GUARD, ClusterSpec
from shapleyprio.lab.trial.arms import Arm
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload, jobs_of

CLUSTER = "trial"

CHEAP_JOBS = {
    "ProctrackType": "proctrack/pgid",
    "JobAcctGatherType": "jobacct_gather/none",
}
"""The usual ones read all of /proc for each start and each end of a job: with a thousand jobs that
run, a machine does little else."""

NO_KILL = {"OverTimeLimit": "UNLIMITED"}
"""Limits are the users' own, and on an accelerated clock jobs last a little longer than planned."""

SPARE_SECONDS = 7200
"""Until everything about the window's first jobs has been read."""

MOST_JOBS = 20_000
"""Slurm keeps so many at once with ease, and an accelerated clock leaves time to submit them."""


def as_slurm_runs_it(workload: Workload) -> Workload:
    """Returns the workload as all arms and all simulated policies have it.

    Jobs go to the least loaded nodes. Where jobs are cut, one of q processors is q jobs of one.
    Limits are those that Slurm has.

    Raises:
        WorkloadError: there are more jobs than a trial takes.
    """
    rigid = workload.wide == "rigid"
    copies = np.ones_like(workload.processors) if rigid else workload.processors
    count = int(copies.sum())
    if count > MOST_JOBS:
        what = "jobs" if rigid else "jobs of one processor"
        raise WorkloadError(
            f"the window has {count:,} {what}; a trial takes {MOST_JOBS:,} at most",
            Remedy.SHORTER_WINDOW,
        )
    position = np.empty(count, dtype=np.int64)
    position[np.argsort(np.repeat(workload.position, copies), kind="stable")] = np.arange(count)
    jobs = jobs_of(_with_whole_minutes(workload), np.repeat(np.arange(len(copies)), copies))
    return replace(
        jobs,
        processors=jobs.processors if rigid else np.ones(count, dtype=np.int64),
        start=np.full(count, UNKNOWN, dtype=np.int64),
        position=position,
        placed=None,
        placement="least-loaded",
    )


def _with_whole_minutes(workload: Workload) -> Workload:
    """Returns the workload with limits as Slurm has them, in whole minutes."""
    longest = int(np.maximum(workload.limit, workload.processing_time).max())
    history = workload.history
    if history is not None:
        past = _whole_minutes(history.past_limit, history.past_processing_time, longest)
        history = replace(history, past_limit=past)
    limit = _whole_minutes(workload.limit, workload.processing_time, longest)
    return replace(workload, limit=limit, history=history)


def _whole_minutes(
    limit: NDArray[np.int64], needed: NDArray[np.int64], longest: int
) -> NDArray[np.int64]:
    """Returns the users' limits, and for jobs without one the longest, as their partition has it.

    A job that lasted longer than its limit has the one that it needed.
    """
    minutes: NDArray[np.int64] = -(
        -np.maximum(np.where(limit == UNKNOWN, longest, limit), needed) // 60
    )
    return 60 * minutes


@dataclass(frozen=True, slots=True)
class TrialMember:
    """An organization as the private Slurm knows it.

    Attributes:
        handle: of its account, partition and QOS; names of logs may be none that Slurm takes.
        node: its only one; None if it brings no processors.
        processors: that it brings.
    """

    handle: str
    node: str | None
    processors: int


def members_of(workload: Workload) -> tuple[TrialMember, ...]:
    """Returns the organizations in their order."""
    return tuple(
        TrialMember(f"o{u + 1}", f"n{u + 1}" if owned else None, owned)
        for u, owned in enumerate(workload.owned.tolist())
    )


def account_of(workload: Workload, job: int, arm: Arm) -> str:
    """Returns the account of a job: its organization's, or below it that of its user."""
    handle = members_of(workload)[int(workload.organization[job])].handle
    if not arm.knows_users or workload.history is None:
        return handle
    return user_account(handle, int(workload.history.user[job]))


def user_account(handle: str, user: int) -> str:
    """Returns the account of a user, whose jobs are those of the organization with the handle."""
    return f"{handle}u{user}" if user != UNKNOWN else handle


def users_of(workload: Workload) -> Mapping[str, list[int]]:
    """Maps organizations' handles to the codes of their users, UNKNOWN left out."""
    if workload.history is None:
        return {}
    users = workload.history.user
    found = {}
    for u, member in enumerate(members_of(workload)):
        own: list[int] = np.unique(users[workload.organization == u]).tolist()
        found[member.handle] = [user for user in own if user != UNKNOWN]
    return found


def owners_of(workload: Workload) -> Mapping[str, int]:
    """Maps nodes to the indices of their organizations."""
    members = members_of(workload)
    return {member.node: u for u, member in enumerate(members) if member.node is not None}


def sizes_of(workload: Workload) -> Mapping[str, int]:
    """Maps nodes to their processors."""
    return {m.node: m.processors for m in members_of(workload) if m.node is not None}


def spec_for(workload: Workload, arm: Arm, *, speed: int) -> ClusterSpec:
    """Returns the cluster: a partition of its own for each organization that brings a node."""
    members = [member for member in members_of(workload) if member.node is not None]
    return ClusterSpec(
        name=CLUSTER,
        partitions={m.handle: (m.node,) for m in members if m.node is not None},
        cpus=sizes_of(workload),
        speed=speed,
        longest_limit=int(workload.limit.max()),
        extra={**arm.settings, **CHEAP_JOBS, **NO_KILL, **_remembering(workload)},
    )


def _remembering(workload: Workload) -> Mapping[str, str]:
    """Has slurmctld know until the end how many processors a whole job got of each node."""
    if workload.wide != "rigid":
        return {}
    seconds = workload.window.length + SPARE_SECONDS
    return {"MinJobAge": str(min(seconds, LONGEST_GUARD))}
