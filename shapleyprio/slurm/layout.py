"""A cluster as Slurm knows it: nodes, partitions, accounts, and how it computes priorities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shapleyprio.common.records import record
from shapleyprio.slurm.associations import ROOT


@record
class Node:
    """A node and what it has, by TRES name (``cpu``, ``billing``, ``gres/gpu``).

    Attributes:
        name: its name.
        tres: what is configured, also while it is down or drained.
        closed: whether Slurm starts no job there until somebody or something brings the node back:
            it is down, drained, failing or under maintenance, or will be as soon as its jobs have
            ended. A powered-down node is not closed, for a job wakes it; nor is one that is silent
            or reboots, which Slurm declares down if that lasts.
        allocated: what its running jobs hold.
    """

    name: str
    tres: Mapping[str, int]
    closed: bool = False
    allocated: Mapping[str, int] = field(default_factory=dict)

    def usable(self, tres: str) -> int:
        """Returns how much is there for work: of a closed node what its jobs still hold."""
        has = self.tres.get(tres, 0)
        return min(self.allocated.get(tres, 0), has) if self.closed else has


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition.

    Attributes:
        name: its name.
        nodes: names of its nodes.
        allow_accounts: the only accounts that may use it; empty for all.
        priority_job_factor: its PriorityJobFactor.
        longest: its MaxTime, seconds that a job there may run at most; None for no end.
        preempts: whether Slurm may end or suspend its jobs for others (PreemptMode).
    """

    name: str
    nodes: tuple[str, ...]
    allow_accounts: tuple[str, ...]
    priority_job_factor: int
    longest: int | None = None
    preempts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Nodes on which for some time no jobs run but a reservation's own, or none (maintenance).

    Attributes:
        name: its name.
        begin, end: seconds since the epoch.
        nodes: names of the nodes that it has as a whole.
    """

    name: str
    begin: int
    end: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrioritySettings:
    """How Slurm computes priorities.

    Attributes:
        type: PriorityType, such as ``priority/multifactor``.
        weights: factor (``Age``, ``FairShare``, ``QOS``, ``TRES:cpu``, ...) -> PriorityWeight.
        flags: PriorityFlags.
        calc_period_seconds: PriorityCalcPeriod.
        max_age_seconds: PriorityMaxAge.
        site_factor_plugin: PrioritySiteFactorPlugin, empty if none.
        user_top: whether users may put one of their jobs before their others by ``scontrol top``,
            by which Slurm changes the nice of all of them, also below 0.
    """

    type: str
    weights: Mapping[str, int]
    flags: frozenset[str]
    calc_period_seconds: int
    max_age_seconds: int
    site_factor_plugin: str
    user_top: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionSettings:
    """What looks at new jobs, and where.

    Attributes:
        plugins: JobSubmitPlugins.
        controller_hosts: SlurmctldHost, without addresses: the first one and its backups.
        slurm_user: number of SlurmUser; None if it is not known.
    """

    plugins: frozenset[str] = frozenset()
    controller_hosts: tuple[str, ...] = ()
    slurm_user: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The cluster as Slurm knows it.

    Attributes:
        cluster: ClusterName.
        version: the release of Slurm that the controller is, such as ``24.11.5``.
        nodes, partitions: by name.
        accounts: account -> its parent account, None for those below the root.
        qos_priorities: QOS -> priority.
        enforces_accounts: whether users can submit jobs only to accounts that they belong to.
            Else anybody chooses any text as account, so that neither the account nor what is
            accounted to it can be relied on.
        settings: how priorities are computed.
        submission: what looks at new jobs.
        daemon_hosts: where slurmctld and slurmdbd run, by name or address.
        kill_wait_seconds: KillWait, from the signal that asks a job's processes to end to the one
            that ends them.
    """

    cluster: str
    version: str
    nodes: Mapping[str, Node]
    partitions: Mapping[str, Partition]
    accounts: Mapping[str, str | None]
    qos_priorities: Mapping[str, int]
    enforces_accounts: bool
    settings: PrioritySettings
    submission: SubmissionSettings = SubmissionSettings()
    kill_wait_seconds: int = 30
    daemon_hosts: tuple[str, ...] = ()

    def partitions_of_nodes(self) -> dict[str, tuple[str, ...]]:
        """Returns node -> names of the partitions that it is in, sorted; none that is in none."""
        found: dict[str, tuple[str, ...]] = {}
        for name in sorted(self.partitions):
            for node in self.partitions[name].nodes:
                found[node] = (*found.get(node, ()), name)
        return found

    def of_unknown_accounts(self, accounts: Iterable[str]) -> dict[str, int]:
        """Returns account -> how many jobs have it, for accounts that Slurm does not know.

        Where accounts are not enforced, users make them up.

        Args:
            accounts: those of some jobs, one for each.
        """
        jobs_of = Counter(accounts)
        return {
            account: number
            for account, number in jobs_of.items()
            if account not in self.accounts and account != ROOT
        }
