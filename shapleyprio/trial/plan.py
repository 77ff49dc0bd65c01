"""The plan of a trial: a workload as jobs of a private Slurm that its organizations own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from shapleyprio.errors import Remedy
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.log import UNKNOWN
from shapleyprio.replay.workload import Workload, jobs_of
from shapleyprio.testbed.configuration import ClusterSpec
from shapleyprio.trial.arms import Arm

CLUSTER = "trial"

CHEAP_JOBS = {
    "ProctrackType": "proctrack/pgid",
    "JobAcctGatherType": "jobacct_gather/none",
}
"""The usual ones read all of /proc for each start and each end of a job: with a thousand jobs that
run, a machine does little else."""

SPARE_MINUTES = 10
"""Jobs last a little longer on an accelerated clock than they should."""

MOST_JOBS = 20_000
"""Slurm keeps so many at once with ease, and an accelerated clock leaves time to submit them."""


def as_slurm_runs_it(workload: Workload) -> Workload:
    """Returns the workload with q jobs of one processor for one of q, on the least loaded nodes.

    The former is how the papers have it; the latter is how all arms are set up.

    Raises:
        WorkloadError: they are more than a trial takes.
    """
    copies = workload.processors
    count = int(copies.sum())
    if count > MOST_JOBS:
        raise WorkloadError(
            f"the window has {count:,} jobs of one processor; a trial takes {MOST_JOBS:,} at most",
            Remedy.SHORTER_WINDOW,
        )
    ones = np.ones(count, dtype=np.int64)
    position = np.empty(count, dtype=np.int64)
    position[np.argsort(np.repeat(workload.position, copies), kind="stable")] = np.arange(count)
    return replace(
        jobs_of(workload, np.repeat(np.arange(len(copies)), copies)),
        processors=ones,
        start=ones * UNKNOWN,
        position=position,
        placed=None,
        placement="least-loaded",
    )


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


def spec_for(workload: Workload, arm: Arm, *, speed: int) -> ClusterSpec:
    """Returns the cluster: a partition of its own for each organization that brings a node."""
    members = [member for member in members_of(workload) if member.node is not None]
    return ClusterSpec(
        name=CLUSTER,
        partitions={m.handle: (m.node,) for m in members if m.node is not None},
        cpus={m.node: m.processors for m in members if m.node is not None},
        speed=speed,
        extra={**arm.settings, **CHEAP_JOBS},
    )


def users_minutes(limit: int, needed: int) -> int | None:
    """Returns the time limit of a job whose user asked for so many seconds, None for none."""
    return None if limit == UNKNOWN else -(-max(limit, needed) // 60) + SPARE_MINUTES


def limit_minutes(workload: Workload, job: int, arm: Arm) -> int | None:
    """Returns a job's time limit, None for none.

    It is so generous that the scheduler learns nothing from it; where the daemon predicts
    processing times it is the user's, as far as the job keeps to it.
    """
    if arm.knows_users:
        return users_minutes(int(workload.limit[job]), int(workload.processing_time[job]))
    longest = int(workload.processing_time.max())
    return -(-max(4 * longest, longest + 3600) // 60)
