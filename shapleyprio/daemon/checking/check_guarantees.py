"""Checks where priorities alone cannot keep guarantees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from shapleyprio.common.wording import duration, listed
from shapleyprio.config.membership import Membership
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import Layout, Partition


def check_guarantees(
    guarantees: Mapping[str, int], members: Membership, layout: Layout
) -> Iterator[Finding]:
    """Finds partitions where others may hold an owner's nodes for longer than its guarantee says.

    Args:
        guarantees: organization -> seconds.
        members: who has which accounts and nodes.
        layout: of the cluster, or of what a pool has of it.
    """
    if not guarantees:
        return
    if overlapping := _overlapping(layout.partitions.values()):
        yield Finding(
            Severity.NOTICE,
            "partitions",
            f"{listed(overlapping)} have some nodes in common, not all: an owner's job that goes "
            "first in one may take another owner's nodes, whose own job then waits for longer than "
            "fairness.guarantee says",
            "let partitions have all nodes in common or none (docs/semantics.md, What a guarantee "
            "leaves)",
        )
    for partition in layout.partitions.values():
        owners = {members.nodes.get(node, NOBODY) for node in partition.nodes}
        short: defaultdict[int, list[str]] = defaultdict(list)
        for name, seconds in guarantees.items():
            if name in owners and _others_may_stay(partition, name, seconds, members):
                short[seconds].append(name)
        for seconds, names in sorted(short.items()):
            stay = "without end" if partition.longest is None else duration(partition.longest)
            yield Finding(
                Severity.NOTICE if partition.preempts else Severity.WARNING,
                f"partition {partition.name}",
                f"jobs of others may stay {stay} on nodes of {listed(sorted(names))}, whose "
                f"fairness.guarantee is {duration(seconds)}: priorities alone cannot keep it"
                + (", unless Slurm preempts these jobs" if partition.preempts else ""),
                f"set MaxTime={-(-seconds // 60)} for it in slurm.conf, let the owner preempt, or "
                "reserve nodes (docs/operations.md, Guarantees)",
            )


def _overlapping(partitions: Iterable[Partition]) -> list[str]:
    """Returns the partitions that have nodes in common with others which have other nodes, too."""
    nodes_of = {partition.name: frozenset(partition.nodes) for partition in partitions}
    return [
        name
        for name, nodes in sorted(nodes_of.items())
        if any(nodes != others and nodes & others for others in nodes_of.values())
    ]


def _others_may_stay(partition: Partition, owner: str, seconds: int, members: Membership) -> bool:
    """Returns whether anybody else's jobs may run there for longer."""
    allowed = partition.allow_accounts or tuple(members.accounts)
    others = any(members.accounts.get(account, NOBODY) != owner for account in allowed)
    return others and (partition.longest is None or partition.longest > seconds)
