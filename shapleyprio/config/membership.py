"""The owner of every node and account of the cluster, as the configuration has it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from shapleyprio.config.consortium import Organization
from shapleyprio.config.model import Config
from shapleyprio.config.values import host_list
from shapleyprio.fairness.tenure import LEFT_OUT, NOBODY, Kind
from shapleyprio.slurm.channels import Claims
from shapleyprio.slurm.layout import Layout


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something the configuration names and Slurm does not have.

    Attributes:
        organization: who names it; LEFT_OUT for what `fairness` leaves out.
        kind: what it should be.
        name: the account or partition, or all such nodes as one host list.
    """

    organization: str
    kind: Kind
    name: str

    def nearest(self, layout: Layout) -> str | None:
        """Returns what was most likely meant; None if nothing of the cluster resembles it."""
        known: Mapping[str, Collection[str]] = {
            "account": layout.accounts,
            "partition": layout.partitions,
            "node": layout.nodes,
        }
        return next(iter(get_close_matches(self.name, known[self.kind], n=1)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The consortium's shape.

    Attributes:
        nodes: every node of the cluster -> its owner, NOBODY if it has none.
        accounts: every account of the cluster -> its organization, NOBODY if it has none,
            LEFT_OUT if it is left out.
        partitions: every partition of the cluster -> NOBODY, LEFT_OUT if it is left out.
        contested: node -> the organizations that claim it with equal right, if several do; its
            owner is the first of them.
        unknown: what is named and does not exist.
    """

    nodes: Mapping[str, str]
    accounts: Mapping[str, str]
    partitions: Mapping[str, str]
    contested: Mapping[str, tuple[str, ...]]
    unknown: tuple[Unknown, ...]


def membership(
    organizations: Sequence[Organization],
    layout: Layout,
    left_out: Sequence[str] = (),
    left_out_partitions: Sequence[str] = (),
) -> Membership:
    """Applies the configuration's claims to the cluster.

    A node belongs to who names it; if no one does, to who names a partition it is in; in either
    case to the first who does. An account belongs to who claims it, or else to who claims the
    nearest account above it together with the accounts below; the accounts below one that is left
    out are left out in the same way.

    Args:
        organizations: in the order of the configuration.
        layout: the cluster.
        left_out: accounts whose jobs do not count.
        left_out_partitions: so for partitions.
    """
    nodes, contested = node_owners(
        organizations,
        layout.nodes,
        {name: partition.nodes for name, partition in layout.partitions.items()},
    )
    return Membership(
        nodes=nodes,
        accounts=account_holders(organizations, layout.accounts, left_out),
        partitions={
            name: LEFT_OUT if name in left_out_partitions else NOBODY for name in layout.partitions
        },
        contested=contested,
        unknown=(
            *(unknown for one in organizations for unknown in _unknown(one, layout)),
            *_missing(LEFT_OUT, "account", left_out, layout.accounts),
            *_missing(LEFT_OUT, "partition", left_out_partitions, layout.partitions),
        ),
    )


def configured_membership(config: Config, layout: Layout) -> Membership:
    """Applies all that a configuration says of the cluster; `membership` says how."""
    fairness = config.fairness
    return membership(
        config.organizations, layout, fairness.leave_out_accounts, fairness.leave_out_partitions
    )


def claims_of(
    organizations: Sequence[Organization],
    accounts: Mapping[str, str],
    left_out_partitions: Collection[str] = (),
) -> Claims:
    """Returns for which organization the things count that a channel may write to.

    Args:
        organizations: in the order of the configuration.
        accounts: account -> organization, LEFT_OUT among them.
        left_out_partitions: whose jobs do not count.
    """
    accounts = {
        account: NOBODY if holder == LEFT_OUT else holder for account, holder in accounts.items()
    }
    qos = {each.qos: each.name for each in organizations if each.qos}
    return Claims(accounts, qos, frozenset(left_out_partitions))


def host_list_of(nodes: Sequence[str]) -> str:
    """Writes node names as one host list.

    >>> host_list_of(["n1", "n3", "n2"])
    'n[1-3]'
    """
    return str(NodeSet.fromlist(nodes, resolver=RESOLVER_NOGROUP))


def node_owners(
    organizations: Sequence[Organization],
    nodes: Iterable[str],
    partitions: Mapping[str, Iterable[str]],
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Applies the configuration's claims to nodes alone; `membership` says how.

    Args:
        organizations: in the order of the configuration.
        nodes: names of the nodes.
        partitions: partition -> its nodes.

    Returns:
        every node -> its owner, NOBODY if it has none; and node -> the organizations that claim
        it with equal right, if several do.
    """
    by_name, by_partition = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for organization in organizations:
        for node in named_nodes(organization):
            by_name[node].append(organization.name)
        theirs = (partitions.get(partition, ()) for partition in organization.partitions)
        for node in dict.fromkeys(chain.from_iterable(theirs)):
            by_partition[node].append(organization.name)
    claims = {node: by_name.get(node) or by_partition.get(node, []) for node in nodes}
    owners = {node: names[0] if names else NOBODY for node, names in claims.items()}
    contested = {node: tuple(names) for node, names in claims.items() if len(names) > 1}
    return owners, contested


def named_nodes(organization: Organization) -> NodeSet:
    """Returns the nodes that an organization claims by name."""
    named = NodeSet(resolver=RESOLVER_NOGROUP)
    for text in organization.nodes:
        named.update(host_list(text))
    return named


def account_holders(
    organizations: Sequence[Organization],
    parents: Mapping[str, str | None],
    left_out: Sequence[str],
) -> dict[str, str]:
    """Applies the configuration's claims to accounts alone; `membership` says how.

    Args:
        organizations: in the order of the configuration.
        parents: account -> its parent account, None for those below the root.
        left_out: accounts whose jobs do not count.

    Returns:
        every account -> its organization, NOBODY or LEFT_OUT.
    """
    own: dict[str, str] = dict.fromkeys(left_out, LEFT_OUT)
    whole: dict[str, str] = dict.fromkeys(left_out, LEFT_OUT)
    for organization in organizations:
        for account in organization.accounts:
            own.setdefault(account, organization.name)
            if organization.sub_accounts:
                whole.setdefault(account, organization.name)

    def holder(account: str) -> str:
        if account in own:
            return own[account]
        above = parents[account]
        passed = {account}
        while above is not None and above not in passed:
            if above in whole:
                return whole[above]
            passed.add(above)
            above = parents.get(above)
        return NOBODY

    return {account: holder(account) for account in parents}


def _unknown(organization: Organization, layout: Layout) -> Iterator[Unknown]:
    name = organization.name
    yield from _missing(name, "account", organization.accounts, layout.accounts)
    yield from _missing(name, "partition", organization.partitions, layout.partitions)
    if nodes := [node for node in named_nodes(organization) if node not in layout.nodes]:
        yield Unknown(name, "node", host_list_of(nodes))


def _missing(
    organization: str, kind: Kind, names: Iterable[str], known: Collection[str]
) -> Iterator[Unknown]:
    return (Unknown(organization, kind, name) for name in names if name not in known)
