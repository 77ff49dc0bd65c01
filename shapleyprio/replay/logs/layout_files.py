"""Reads what Slurm's commands print of a cluster's nodes and accounts, for a log that lacks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from shapleyprio.replay.errors import LogError
from shapleyprio.replay.logs.files import blocks_of
from shapleyprio.replay.workloads.choices import ALL_CLUSTERS
from shapleyprio.replay.workloads.layout import ASK_ACCOUNTS, ASK_NODES, LoggedNode
from shapleyprio.replay.workloads.log import Log
from shapleyprio.slurm.layout import ROOT
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text.config import node_line, partitions_of_node

T = TypeVar("T")

_NODE = re.compile(r"(?m)^(?=NodeName=)")
_COLUMNS = ("account", "parentname")


def with_layout(
    log: Log, nodes_files: Mapping[str, Path], accounts_files: Mapping[str, Path]
) -> Log:
    """Returns a log whose clusters have the nodes and accounts of files.

    Args:
        log: of one cluster or several.
        nodes_files: cluster, or `ALL_CLUSTERS`, -> its file of nodes.
        accounts_files: likewise, of accounts.

    Raises:
        LogError: a file cannot be read, or is of no cluster of the log.
    """
    if not nodes_files and not accounts_files:
        return log
    logs = log.clusters or (log,)
    strange = {*nodes_files, *accounts_files} - {ALL_CLUSTERS, *(one.cluster for one in logs)}
    if strange:
        raise LogError(
            f"{log.source}: has no jobs of {', '.join(sorted(strange))}, whose nodes or accounts "
            "are given"
        )
    found = [
        replace(
            one,
            layout=replace(
                one.layout,
                nodes=_of(one, nodes_files, read_nodes) or one.layout.nodes,
                parents=_of(one, accounts_files, read_accounts) or one.layout.parents,
            ),
        )
        for one in logs
    ]
    return replace(log, clusters=tuple(found)) if log.clusters else found[0]


def _of(log: Log, files: Mapping[str, Path], read: Callable[[Path, str], T]) -> T | None:
    file = files.get(log.cluster, files.get(ALL_CLUSTERS))
    return None if file is None else read(file, log.cluster)


def read_nodes(file: Path, _cluster: str = "") -> dict[str, LoggedNode]:
    """Reads what ``scontrol show nodes`` has printed.

    Returns:
        name -> node, with its CPUs as processors.

    Raises:
        LogError: it is something else.
    """
    nodes = {}
    for record in _NODE.split(_text(file))[1:]:
        line = " ".join(record.split())
        node = node_line(line)
        if isinstance(node, Malformed):
            raise LogError(f"{file}: {node.reason}; give what `{ASK_NODES}` prints")
        partitions = tuple(sorted(partitions_of_node(line)))
        nodes[node.name] = LoggedNode(node.tres["cpu"], partitions)
    if not nodes:
        raise LogError(f"{file}: names no node; give what `{ASK_NODES}` prints")
    return nodes


def read_accounts(file: Path, cluster: str = "") -> dict[str, str | None]:
    """Reads what ``sacctmgr -P show assoc`` has printed.

    Args:
        file: its name.
        cluster: whose accounts are meant, where the file has several.

    Returns:
        account -> its parent account, None for those below the root.

    Raises:
        LogError: it is something else, or it is not known which of its clusters is meant.
    """
    parents: dict[str, str | None] = {}
    for number, row in _rows(file):
        account, parent = row["account"], row["parentname"]
        if row.get("user") or (cluster and row.get("cluster", cluster) != cluster):
            continue
        if account == ROOT:
            continue
        if not parent:
            raise LogError(
                f"{file}:{number}: does not give the parent of account {account}; give what "
                f"`{ASK_ACCOUNTS}` prints"
            )
        above = None if parent == ROOT else parent
        if parents.setdefault(account, above) != above:
            raise LogError(
                f"{file}:{number}: account {account} is below {parent}, and in another cluster "
                f"below {parents[account] or ROOT}; ask sacctmgr for the column Cluster too, or "
                "give the accounts of one cluster"
            )
    if not parents:
        of_cluster = f" of cluster {cluster}" if cluster else ""
        raise LogError(f"{file}: names no account{of_cluster}; give what `{ASK_ACCOUNTS}` prints")
    return parents


def _rows(file: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yields the lines below the one that names the columns, by column."""
    names: list[str] = []
    for number, line in enumerate(_text(file).splitlines(), start=1):
        cells = [cell.strip() for cell in line.split("|")]
        if names and line.strip():
            fields = dict(zip(names, cells, strict=False))
            if missing := [name for name in _COLUMNS if name not in fields]:
                raise LogError(
                    f"{file}:{number}: has no {missing[0]}; give what `{ASK_ACCOUNTS}` prints"
                )
            yield number, fields
        elif set(_COLUMNS).issubset(found := [cell.casefold() for cell in cells]):
            names = found
    if not names:
        raise LogError(
            f"{file}: no line names {', '.join(_COLUMNS)}; give what `{ASK_ACCOUNTS}` prints"
        )


def _text(file: Path) -> str:
    return b"".join(blocks_of(str(file), lambda _: None)).decode(errors="replace")
