"""Reads what Slurm's commands print of a cluster's nodes and accounts, for a log that lacks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from shapleyprio.slurm.text.values import UnreadableError, amount, hosts

T = TypeVar("T")

_NODE = re.compile(r"(?m)^(?=NodeName=)")
_NAMES = ("account", "parentname")
_RULE = re.compile(r"[\s-]*-[\s-]*")


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
    """Reads what ``scontrol show nodes`` or ``sinfo -N -l`` has printed.

    Returns:
        name -> node, with its CPUs as processors.

    Raises:
        LogError: it is neither.
    """
    text = _text(file)
    nodes = dict(_of_scontrol(file, text) if "NodeName=" in text else _of_sinfo(file, text))
    if not nodes:
        raise LogError(f"{file}: names no node; give what `{ASK_NODES}` prints")
    return nodes


def _of_scontrol(file: Path, text: str) -> Iterator[tuple[str, LoggedNode]]:
    for record in _NODE.split(text)[1:]:
        line = " ".join(record.split())
        node = node_line(line)
        if isinstance(node, Malformed):
            raise LogError(f"{file}: {node.reason}; give what `{ASK_NODES}` prints")
        partitions = tuple(sorted(partitions_of_node(line)))
        yield node.name, LoggedNode(node.tres["cpu"], partitions)


def _of_sinfo(file: Path, text: str) -> Iterator[tuple[str, LoggedNode]]:
    found: dict[str, tuple[int, set[str]]] = {}
    for number, row in _rows(file, text, ("nodelist", "partition", "cpus"), ASK_NODES):
        try:
            processors = amount("CPUS", row["cpus"])
            for name in hosts("NODELIST", row["nodelist"]):
                partitions = found.setdefault(name, (processors, set()))[1]
                partitions.add(row["partition"].removesuffix("*"))
        except UnreadableError as error:
            raise LogError(f"{file}:{number}: {error}; give what `{ASK_NODES}` prints") from None
    for name, (processors, partitions) in found.items():
        yield name, LoggedNode(processors, tuple(sorted(partitions)))


def read_accounts(file: Path, cluster: str = "") -> dict[str, str | None]:
    """Reads what ``sacctmgr show assoc`` has printed, with a column ParentName or as a tree.

    Args:
        file: its name.
        cluster: whose accounts are meant, where the file has several.

    Returns:
        account -> its parent account, None for those below the root.

    Raises:
        LogError: it is something else, names were cut off, or it is not known which of its
            clusters is meant.
    """
    parents: dict[str, str | None] = {}
    above: list[str] = []
    rows = _rows(file, _text(file), ("account",), ASK_ACCOUNTS, indented="account")
    for number, row in rows:
        account = row["account"].strip()
        if row.get("user") or (cluster and row.get("cluster", cluster) != cluster):
            continue
        depth = 0
        if "parentname" in row:
            parent = row["parentname"]
        else:
            depth = len(row["account"]) - len(account)
            parent = above[depth - 1] if 0 < depth <= len(above) else ""
            above[depth:] = [account]
        if account == ROOT and depth == 0:
            continue
        if not parent:
            raise LogError(
                f"{file}:{number}: does not give the parent of account {account}; give what "
                f"`{ASK_ACCOUNTS}` prints"
            )
        above_it = None if parent == ROOT else parent
        if parents.setdefault(account, above_it) != above_it:
            raise LogError(
                f"{file}:{number}: account {account} is below {parent}, and in another cluster "
                f"below {parents[account] or ROOT}; ask sacct for the column Cluster too, or give "
                "the accounts of one cluster"
            )
    if not parents:
        of_cluster = f" of cluster {cluster}" if cluster else ""
        raise LogError(f"{file}: names no account{of_cluster}; give what `{ASK_ACCOUNTS}` prints")
    return parents


def _rows(
    file: Path, text: str, wanted: Sequence[str], ask: str, *, indented: str = ""
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yields the lines of a table below the one that names its columns, by column.

    Fields are separated by ``|``, lie above each other where a line of dashes says how wide they
    are, or are separated by blanks. Of one column the blanks before its texts matter.
    """
    lines = text.splitlines()
    names: list[str] = []
    cuts: list[slice] | None = None
    bars = False
    for number, line in enumerate(lines, start=1):
        if not names:
            found = [cell.strip().casefold() for cell in _cells(line, None, bars="|" in line)]
            if not set(wanted).difference(found):
                names, bars = found, "|" in line
        elif _RULE.fullmatch(line):
            cuts = [slice(*found.span()) for found in re.finditer("-+", line)]
            names = [lines[number - 2][cut].strip().casefold() for cut in cuts]
        elif line.strip():
            fields = dict(zip(names, _cells(line, cuts, bars=bars), strict=False))
            if missing := [name for name in wanted if name not in fields]:
                raise LogError(f"{file}:{number}: has no {missing[0]}; give what `{ask}` prints")
            if cuts is not None and any(fields.get(name, "").endswith("+") for name in _NAMES):
                raise LogError(f"{file}:{number}: a name is cut off; give what `{ask}` prints")
            yield number, {k: v.rstrip() if k == indented else v.strip() for k, v in fields.items()}
    if not names:
        raise LogError(f"{file}: no line names {', '.join(wanted)}; give what `{ask}` prints")


def _cells(line: str, cuts: Sequence[slice] | None, *, bars: bool) -> list[str]:
    if cuts is not None:
        return [line[cut].rstrip() for cut in cuts]
    return line.split("|") if bars else line.split()


def _text(file: Path) -> str:
    return b"".join(blocks_of(str(file), lambda _: None)).decode(errors="replace")
