"""The keys of an organization in the configuration file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from shapleyprio.config.section import ConfigSection, key
from shapleyprio.config.toml import Path
from shapleyprio.config.values import (
    HostLists,
    LogNames,
    Names,
    OptionalText,
    OrganizationName,
    OwnSecondsOrOff,
    Processors,
    SlurmNames,
    Switch,
)


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
