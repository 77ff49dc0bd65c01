"""Plays a large cluster with fewer nodes: each stands for several that are alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from types import MappingProxyType

from shapleyprio.lab.rehearsal.site_files import SiteError
from shapleyprio.lab.rehearsal.slurm_conf import SiteConf, SiteNode, SitePartition

NOT_OF_SHAPE = ("Weight", "Feature", "Features")
"""Options of a node that stay as they are where several are one."""


def with_fewer_nodes(conf: SiteConf, owners: Mapping[str, int], most: int) -> tuple[SiteConf, int]:
    """Puts nodes together that have the same shape, features, partitions and owner.

    Args:
        conf: of the site.
        owners: node -> index of its organization.
        most: how many nodes there may be.

    Returns:
        the same with so many nodes at most, and how many of the site's each stands for at most.

    Raises:
        SiteError: there are more kinds of nodes.
    """
    if len(conf.nodes) <= most:
        return conf, 1
    alike: dict[tuple[object, ...], list[str]] = {}
    for name, logged in conf.layout.items():
        kind = conf.nodes[name], logged.partitions, owners[name]
        alike.setdefault(kind, []).append(name)
    if len(alike) > most:
        raise SiteError(
            f"{conf.file}: nodes of {len(alike):,} kinds cannot be played with {most:,}; raise "
            "--max-nodes"
        )
    together = next(
        many for many in count(2) if sum(-(-len(names) // many) for names in alike.values()) <= most
    )
    nodes = {
        names[first]: _as_one(conf.nodes[names[first]], len(names[first : first + together]))
        for names in alike.values()
        for first in range(0, len(names), together)
    }
    effect = (
        f"{len(nodes):,} stand for them, up to {together} alike in one, so jobs leave fewer gaps"
    )
    found = replace(
        conf,
        nodes=nodes,
        partitions={
            name: SitePartition(
                tuple(node for node in partition.nodes if node in nodes), partition.options
            )
            for name, partition in conf.partitions.items()
        },
        left_out=MappingProxyType({**conf.left_out, f"{len(conf.nodes):,} nodes": effect}),
    )
    return found, together


def _as_one(node: SiteNode, many: int) -> SiteNode:
    """Returns a node with the processors, memory and GPUs of several."""
    kept = [word for word in node.options.split() if word.partition("=")[0] in NOT_OF_SHAPE]
    processors, memory = many * node.processors, many * node.memory
    return replace(
        node,
        processors=processors,
        memory=memory,
        options=" ".join((f"CPUs={processors}", f"RealMemory={memory}", *kept)),
        gpus=re.sub(r"[0-9]+(?=,|$)", lambda found: str(many * int(found[0])), node.gpus),
    )
