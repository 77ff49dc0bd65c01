"""The keys of organizations and pools in the file, and which of them contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from shapleyprio.config.keys import ConfigSection, key
from shapleyprio.config.toml import Path
from shapleyprio.config.values import (
    LONGEST_LEDGER_NAME,
    HostLists,
    LogNames,
    Names,
    OptionalText,
    OptionalWeight,
    OrganizationName,
    OwnSecondsOrOff,
    Processors,
    SlurmNames,
    Switch,
)
from shapleyprio.fairness.pool import ledger_of
from shapleyprio.slurm.channels import CHANNELS


class Organization(ConfigSection):
    """[[organization]]."""

    name: OrganizationName = key(..., "Name of the organization in reports and metrics.", "physics")
    parent: OptionalText = key(
        None,
        "Organization that it is a part of, such as its faculty (docs/semantics.md).",
        "science",
    )
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
        "without `accounts`, `users`, `groups` and `queues` also claims the jobs in them.",
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
    guarantee: OwnSecondsOrOff = key(
        None, "Its own guarantee, in place of fairness.guarantee.", "1h"
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


def parents_of(organizations: Iterable[Organization]) -> dict[str, str]:
    """Returns organization -> its parent, of those that have one."""
    return {one.name: one.parent for one in organizations if one.parent is not None}


def unparented(organizations: tuple[Organization, ...]) -> Iterator[tuple[Path, str]]:
    """Yields parents that are no organization, or that have a parent themselves."""
    parents = {one.name: one.parent for one in organizations}
    for index, one in enumerate(organizations):
        where = ("organization", index, "parent")
        if one.parent is None:
            continue
        if one.parent not in parents:
            near = get_close_matches(one.parent, parents, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "give it a table, too"
            yield where, f"{one.parent!r} is not an organization; {hint}"
        elif one.parent == one.name:
            yield where, "is the organization itself; leave it out"
        elif parents[one.parent] is not None:
            yield (
                where,
                f"{one.parent!r} has the parent {parents[one.parent]!r}; there are only two "
                "levels, so name that one",
            )


class Pool(ConfigSection):
    """[[pool]]."""

    name: OrganizationName = key(
        ...,
        "Name of the pool, the same at all its clusters. Under another name it starts from zero.",
        "all",
    )
    clusters: SlurmNames = key(
        ...,
        "ClusterNames of its clusters. One that is added counts from its first cycle in the pool; "
        "what a removed one earned in the pool still counts.",
        ["c1", "c2"],
    )
    partitions: SlurmNames = key(
        (),
        "Partitions of each cluster whose jobs and nodes it has. Without this key it has all that "
        "no other pool names.",
        ["gpu"],
    )
    weight: OptionalWeight = key(
        None,
        "Unit of a processor in this pool. fairness.weight if left out.",
        "gres/gpu",
    )


def misnamed(pools: tuple[Pool, ...]) -> Iterator[tuple[Path, str]]:
    """Yields pools that name no cluster, what can be none, or the same twice."""
    for index, pool in enumerate(pools):
        if not pool.clusters:
            yield (
                ("pool", index, "clusters"),
                "names no cluster; write the ClusterNames of those in the pool",
            )
        for cluster in pool.clusters:
            if "/" in cluster:
                yield (
                    ("pool", index, "clusters"),
                    f"{cluster!r} is not a ClusterName; to take a part of a cluster, name its "
                    "`partitions`",
                )
        for place, names in (("clusters", pool.clusters), ("partitions", pool.partitions)):
            for name, times in Counter(names).items():
                if times > 1:
                    yield ("pool", index, place), f"{name!r} is listed twice; list it once"


def split_twice(pools: tuple[Pool, ...]) -> Iterator[tuple[Path, str]]:
    """Yields what several pools have of one cluster: what is left over, or a partition."""
    first: dict[tuple[str, str], int] = {}
    for index, pool in enumerate(pools):
        for cluster in pool.clusters:
            for partition in pool.partitions or ("",):
                other = first.setdefault((cluster, partition), index)
                if other != index and partition:
                    yield (
                        ("pool", index, "partitions"),
                        f"{partition!r} of {cluster} is already in pool[{other + 1}]; "
                        "leave it to one of them",
                    )
                elif other != index:
                    yield (
                        ("pool", index, "clusters"),
                        f"{cluster!r} is already taken by pool[{other + 1}]; "
                        "leave it to one of them, or name the `partitions` of one",
                    )
            if pool.partitions and len(ledger_of(cluster, pool.name)) > LONGEST_LEDGER_NAME:
                yield (
                    ("pool", index, "name"),
                    f"is too long with that of {cluster} before it: "
                    f"{LONGEST_LEDGER_NAME} characters together with a slash",
                )


def alike_in_pools(
    pools: tuple[Pool, ...], channel: str, *, table: bool
) -> Iterator[tuple[Path, str]]:
    """Yields why the jobs of an account cannot have other points in each pool.

    Args:
        pools: of the configuration.
        channel: name of the one that is written to.
        table: whether new jobs have their points from a table.
    """
    for index, pool in enumerate(pools):
        if pool.partitions and not CHANNELS[channel].per_job:
            yield (
                ("pool", index, "partitions"),
                f'splits a cluster, but push.channel is "{channel}", which gives one priority to '
                f'all jobs of a {CHANNELS[channel].carrier}; set push.channel to "site_factor"',
            )
        elif pool.partitions and table:
            yield (
                ("pool", index, "partitions"),
                "splits a cluster, but push.table gives all new jobs of an account the same "
                "points; leave push.table out",
            )
