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
        "Whether accounts below those are included, except those that another organization "
        "claims. The replay of a log knows them by --accounts; else only the listed ones count.",
        False,
    )
    partitions: SlurmNames = key(
        (),
        "Partitions whose nodes it owns. In the replay of a log without accounts, an "
        "organization without `accounts`, `users`, `groups` and `queues` has the jobs of its "
        "partitions as well.",
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
        "Read by `replay` only: users whose jobs are its jobs, unless an organization claims the "
        "account. For logs in SWF, their numbers.",
        [3, 17],
    )
    groups: LogNames = key(
        (),
        "Read by `replay` only: groups whose jobs are its jobs, unless an organization claims the "
        "account or user. For logs in SWF, their numbers.",
        [1],
    )
    queues: LogNames = key(
        (),
        "Read by `replay` only: queues whose jobs are its jobs, unless an organization claims the "
        "account, user or group. For logs in SWF, their numbers.",
        [2],
    )
    processors: Processors = key(
        None,
        "Read by `replay` only: number of processors that it brings, whatever the log says of its "
        "nodes. If left out, its nodes count as --nodes says, or each as many as the log's jobs "
        "ever held there at one time; a log without nodes, such as one in SWF, needs either.",
        64,
    )
