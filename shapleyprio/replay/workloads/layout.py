"""What gives a log its meaning, and none of its jobs says: the cluster's nodes and accounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ASK_NODES = "scontrol show nodes -o"
ASK_ACCOUNTS = "sacctmgr -P show assoc format=Cluster,Account,ParentName,User"
"""The commands of Slurm that print a layout."""


@dataclass(frozen=True, slots=True)
class LoggedNode:
    """A node as it was when last seen.

    Attributes:
        processors: how many it has, in the weight of the log's jobs.
        partitions: names of those that it is in, sorted.
    """

    processors: int
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLayout:
    """The layout of a log's cluster, as far as it is known beside the jobs.

    Attributes:
        nodes: name -> node; empty where sizes and partitions are not known.
        parents: account -> its parent account, None for those below the root; empty where the tree
            is not known.
    """

    nodes: Mapping[str, LoggedNode] = field(default_factory=dict)
    parents: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def nodes_of_partitions(self) -> dict[str, set[str]]:
        """Partition -> names of its nodes."""
        found: dict[str, set[str]] = {}
        for name, node in self.nodes.items():
            for partition in node.partitions:
                found.setdefault(partition, set()).add(name)
        return found
