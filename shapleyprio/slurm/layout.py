"""A cluster as Slurm knows it: nodes, partitions, accounts, and how it computes priorities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from shapleyprio.common.records import record

ROOT = "root"
"""The account above all others."""

UNSET_PRIORITY = -1
"""What Slurm takes to remove the priority that is set at an association."""


@dataclass(frozen=True, slots=True)
class Association:
    """What Slurm can give a priority to.

    Attributes:
        account: its name.
        user: login name; empty for the account itself.
        partition: where alone the user has it; empty for everywhere.
    """

    account: str
    user: str = ""
    partition: str = ""


@dataclass(frozen=True, slots=True)
class AccountPriority:
    """The priority of an account, as accounting has it.

    Attributes:
        own: what is set at the account itself; None where nothing is.
        due: what its jobs therefore get: `own`, or that of the nearest account above which has
            one; 0 if none has.
    """

    own: int | None
    due: int

    @property
    def stored(self) -> int:
        """What to write so that the account is as it is now."""
        return UNSET_PRIORITY if self.own is None else self.own


@dataclass(frozen=True, slots=True)
class Coordinators:
    """Who may change an account without being an operator of Slurm.

    Attributes:
        by_account: account -> its coordinators, for accounts that have some.
        powerless: whether slurmdbd keeps them from changing anything (DisableCoordDBD).
    """

    by_account: Mapping[str, tuple[str, ...]]
    powerless: bool


def account_priorities(
    own: Mapping[str, int | None], parents: Mapping[str, str | None]
) -> dict[str, AccountPriority]:
    """Returns account -> its priority.

    Args:
        own: account -> what is set at it, None for nothing; the root may be among them.
        parents: the same accounts -> the account above, None where there is none.

    >>> account_priorities({"a": 5, "a1": None, "b": None}, {"a": None, "a1": "a", "b": None})["a1"]
    AccountPriority(own=None, due=5)
    """
    return {account: AccountPriority(own[account], _due(account, own, parents)) for account in own}


def _due(account: str, own: Mapping[str, int | None], parents: Mapping[str, str | None]) -> int:
    at: str | None = account
    passed: set[str] = set()
    while at is not None and at not in passed:
        found = own.get(at)
        if found is not None:
            return found
        passed.add(at)
        at = parents.get(at)
    return 0


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


SHORTEST_CALC_PERIOD = 60
"""Seconds of the shortest PriorityCalcPeriod there is."""


def others_by_factor(layout: Layout, own: str | None) -> dict[str, int]:
    """Returns the most that each factor but ours adds to one job's priority over another's.

    A factor lies in [0, 1] and is multiplied by its weight, unless PriorityFlags keeps Slurm
    from normalizing it: then the largest priority in use multiplies the weight.

    Args:
        layout: the cluster.
        own: the factor that carries our points; None for none of them.
    """
    settings = layout.settings
    if settings.type != "priority/multifactor":
        return {}
    largest = {
        "QOS": max(layout.qos_priorities.values(), default=0),
        "Partition": max((p.priority_job_factor for p in layout.partitions.values()), default=0),
    }
    flag = {"QOS": "NO_NORMAL_QOS", "Partition": "NO_NORMAL_PART"}
    raw = {factor: is_raw(settings.flags, name) for factor, name in flag.items()}
    others = {}
    for factor, weight in settings.weights.items():
        if factor == own:
            continue
        points = weight
        if factor in largest:
            points *= largest[factor] if raw[factor] else largest[factor] > 0
        if points > 0:
            others[factor] = points
    return others


def others_can_add(layout: Layout, own: str | None) -> int:
    """Returns the most that all factors but our own add together; see `others_by_factor`."""
    return sum(others_by_factor(layout, own).values())


def is_raw(flags: Collection[str], flag: str) -> bool:
    """Returns whether Slurm leaves a factor as it is; 22.05 shows such flags as NO_NORMAL_ALL."""
    return flag in flags or "NO_NORMAL_ALL" in flags
