"""The keys of an organization in the configuration file."""

from __future__ import annotations

from shapleyprio.config.section import ConfigSection, key
from shapleyprio.config.values import (
    HostLists,
    LogNames,
    Names,
    OptionalText,
    OrganizationName,
    Processors,
    SlurmNames,
    Switch,
)


class Organization(ConfigSection):
    """[[organization]]."""

    name: OrganizationName = key(..., "Name of the organization in reports and metrics.", "physics")
    accounts: Names = key((), "Slurm accounts of its jobs. Without any it only lends.", ["physics"])
    sub_accounts: Switch = key(
        True,
        "Whether accounts below those are included, unless another organization claims them. A "
        "replay of a log knows them by --accounts only.",
        False,
    )
    partitions: SlurmNames = key(
        (),
        "Partitions whose nodes it owns. In a replay of a log without accounts, an organization "
        "without `accounts`, `users`, `groups` and `queues` has their jobs, too.",
        ["physics"],
    )
    nodes: HostLists = key(
        (),
        "Nodes it owns, as host lists. They take precedence over partitions of others.",
        ["n[001-016]"],
    )
    qos: OptionalText = key(
        None,
        'QOS of its jobs; with the channel "qos" the priority of this QOS is written.',
        "physics",
    )
    users: LogNames = key(
        (),
        "For `replay` only: users whose jobs are its own, unless an organization claims the "
        "account. For logs in SWF, their numbers.",
        [3, 17],
    )
    groups: LogNames = key(
        (),
        "For `replay` only: groups, likewise, unless an organization claims the account or user.",
        [1],
    )
    queues: LogNames = key(
        (),
        "For `replay` only: queues, likewise, unless an organization claims the account, user or "
        "group.",
        [2],
    )
    processors: Processors = key(
        None,
        "For `replay` only: processors that it brings. If left out, its nodes count as --nodes "
        "says, or each as many as the log's jobs held there at one time; a log without nodes, such "
        "as one in SWF, needs this.",
        64,
    )
