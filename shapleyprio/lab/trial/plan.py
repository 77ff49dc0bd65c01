"""The plan of a trial: a workload as jobs of a private Slurm that its organizations own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.errors import Remedy
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import EVERYTHING, LONGEST_GUARD, ClusterSpec
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

MOST_NODES = 120
"""Backfilling reserves whole nodes; the smaller they are, the more it is like that of `replay`."""

MOST_JOBS = 20_000
"""Slurm keeps so many at once with ease, and an accelerated clock leaves time to submit them."""


def as_slurm_runs_it(workload: Workload) -> Workload:
    """Returns the workload as all arms and all simulated policies have it.

    Jobs go to where the most is free. Where jobs are cut, one of q processors is q jobs of one.
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
    if not rigid and jobs.history is not None:
        one = np.ones_like(jobs.history.past_processors)
        jobs = replace(jobs, history=replace(jobs.history, past_processors=one))
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


class ClusterPlan(Protocol):
    """How the jobs of a workload become jobs of a private Slurm."""

    @property
    def workload(self) -> Workload:
        """As Slurm runs it."""

    @property
    def owners(self) -> Mapping[str, int]:
        """Node -> index of its organization; nodes of nobody are missing."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Node -> its processors."""

    @property
    def accounts_of_users(self) -> Mapping[int, Sequence[str]]:
        """Code of a user -> accounts that are this user's alone."""

    def spec(self, arm: Arm, *, speed: int) -> ClusterSpec:
        """Returns the cluster of an arm."""

    def populate(self, cluster: PrivateSlurm, arm: Arm) -> None:
        """Adds accounts, and what else jobs need, to a cluster that runs."""

    def options(self, job: int, arm: Arm) -> tuple[str, ...]:
        """Returns the options of sbatch in which jobs differ."""

    def organizations(self, arm: Arm) -> str:
        """Returns the tables [[organization]] of the daemon's configuration."""


@dataclass(frozen=True, slots=True)
class TrialMember:
    """An organization as the private Slurm knows it.

    Attributes:
        handle: of its account, partition and QOS; names of logs may be none that Slurm takes.
        nodes: that it brings -> their processors.
    """

    handle: str
    nodes: Mapping[str, int]


@dataclass(frozen=True)
class OwnNodes:
    """Every organization has small nodes of its own, and one account.

    Slurm fills one node after the other, so the organizations' nodes take turns: whatever part of
    them works, about as large a part of each organization's does. The least loaded nodes first
    (``CR_LLN``) would spread each wide job over all nodes, and backfilling, which reserves whole
    nodes, would keep all of them for the first job that waits.

    Attributes:
        workload: as Slurm runs it.
    """

    workload: Workload

    @cached_property
    def members(self) -> tuple[TrialMember, ...]:
        """The organizations in their order."""
        owned = self.workload.owned.tolist()
        size = max(2, -(-sum(owned) // MOST_NODES))
        turns = sorted(
            (1 - left / processors, u, min(size, left))
            for u, processors in enumerate(owned)
            for left in range(processors, 0, -size)
        )
        nodes: list[dict[str, int]] = [{} for _ in owned]
        for number, (_, u, some) in enumerate(turns, start=1):
            nodes[u][f"n{number}"] = some
        return tuple(TrialMember(f"o{u + 1}", own) for u, own in enumerate(nodes))

    @cached_property
    def owners(self) -> Mapping[str, int]:
        """Node -> index of its organization."""
        return {node: u for u, member in enumerate(self.members) for node in member.nodes}

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Node -> its processors."""
        return {node: size for m in self.members for node, size in m.nodes.items()}

    @property
    def accounts_of_users(self) -> Mapping[int, Sequence[str]]:
        """Code of a user -> the accounts below those of the organizations."""
        found: dict[int, list[str]] = {}
        for handle, users in self._users.items():
            for user in users:
                found.setdefault(user, []).append(user_account(handle, user))
        return found

    @property
    def _users(self) -> Mapping[str, list[int]]:
        """Handles of organizations -> the codes of their users, UNKNOWN left out."""
        if self.workload.history is None:
            return {}
        users = self.workload.history.user
        found = {}
        for u, member in enumerate(self.members):
            own: list[int] = np.unique(users[self.workload.organization == u]).tolist()
            found[member.handle] = [user for user in own if user != UNKNOWN]
        return found

    def spec(self, arm: Arm, *, speed: int) -> ClusterSpec:
        """Returns the cluster: a partition for each organization that brings a node."""
        return ClusterSpec(
            name=CLUSTER,
            partitions={m.handle: tuple(m.nodes) for m in self.members if m.nodes},
            cpus=self.sizes,
            speed=speed,
            longest_limit=int(self.workload.limit.max()),
            reserved_for=1 if arm.guarantee == "off" else 0,  # those that ask have one each
            extra={**arm.settings, **of_any_plan(self.workload)},
        )

    def populate(self, cluster: PrivateSlurm, arm: Arm) -> None:
        """Adds the organizations' accounts, and those of users below them if the arm knows them."""
        cluster.add_accounts(
            dict.fromkeys(member.handle for member in self.members),
            shares={member.handle: sum(member.nodes.values()) for member in self.members},
        )
        if arm.knows_users:
            cluster.add_accounts(
                {
                    user_account(handle, user): handle
                    for handle, users in self._users.items()
                    for user in users
                }
            )
        if arm.needs_qos:
            cluster.add_qos([member.handle for member in self.members])

    def options(self, job: int, arm: Arm) -> tuple[str, ...]:
        """Returns the options of sbatch in which jobs differ."""
        workload = self.workload
        handle = self.members[int(workload.organization[job])].handle
        options = [
            f"--account={self._account_of(job, arm)}",
            f"--partition={EVERYTHING}",
            f"--ntasks={workload.processors[job]}",
            f"--time={workload.limit[job] // 60}",
        ]
        if arm.needs_qos:
            options.append(f"--qos={handle}")
        return tuple(options)

    def _account_of(self, job: int, arm: Arm) -> str:
        """Returns the account of a job: its organization's, or below it that of its user."""
        handle = self.members[int(self.workload.organization[job])].handle
        if not arm.knows_users or self.workload.history is None:
            return handle
        return user_account(handle, int(self.workload.history.user[job]))

    def organizations(self, arm: Arm) -> str:
        """Returns the tables [[organization]] of the daemon's configuration."""
        lines = []
        for u, member in enumerate(self.members):
            head = head_of(u, self.workload)
            lines.append(
                f'[[organization]]\nname = "{member.handle}"\naccounts = ["{member.handle}"]'
            )
            lines += [f'parent = "{self.members[head].handle}"'] if head is not None else []
            lines += [f"nodes = {json.dumps(list(member.nodes))}"] if member.nodes else []
            lines += [f'qos = "{member.handle}"'] if arm.needs_qos else []
        return "\n".join(lines) + "\n"


def head_of(u: int, workload: Workload) -> int | None:
    """Returns the organization that is the parent of u here, the first of its union, if another."""
    first = u if workload.unions is None else workload.unions.index(workload.unions[u])
    return None if first == u else first


def user_account(handle: str, user: int) -> str:
    """Returns the account of a user, whose jobs are those of the organization with the handle."""
    return f"{handle}u{user}" if user != UNKNOWN else handle


def of_any_plan(workload: Workload) -> Mapping[str, str]:
    """Returns the settings that jobs of a log need, whoever's cluster it is."""
    return {**CHEAP_JOBS, **NO_KILL, **_remembering(workload)}


def _remembering(workload: Workload) -> Mapping[str, str]:
    """Has slurmctld know until the end how many processors a whole job got of each node."""
    if workload.wide != "rigid":
        return {}
    seconds = workload.window.length + SPARE_SECONDS
    return {"MinJobAge": str(min(seconds, LONGEST_GUARD))}
