"""The nodes of a log, whoever owns them, and what its jobs held of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.split import split
from shapleyprio.replay.errors import LogError
from shapleyprio.replay.workloads.bays import Nodes
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log, RecordedProcessors
from shapleyprio.replay.workloads.workload import parts_of
from shapleyprio.slurm.text.values import UnreadableError, hosts


def nodes_of(log: Log) -> Nodes:
    """Returns the nodes of a log, unowned.

    Raises:
        LogError: a list of nodes cannot be read.
    """
    spread, which = spread_over_nodes(log)
    names, processors = sized(log, spread, which)
    return Nodes(names=names, owner=np.full(len(names), UNKNOWN, np.int32), processors=processors)


def nodes_of_partitions(log: Log) -> dict[str, set[str]]:
    """Maps partitions to their nodes by the log's layout, else to those on which their jobs ran.

    It is empty where the log names neither.

    Raises:
        LogError: a list of nodes cannot be read.
    """
    known = log.layout.nodes_of_partitions
    partitions = dict(known)
    if "partition" in log.labels and "nodes" in log.labels:
        partition, nodes = log.labels["partition"], log.labels["nodes"]
        for job in _different(nodes.codes, partition.codes)[0].tolist():
            if UNKNOWN not in (partition.codes[job], nodes.codes[job]):
                name = partition.names[partition.codes[job]]
                ran_on = set(_hosts(log, nodes.names[nodes.codes[job]]))
                sure = log.layout.nodes.keys() if name in known else ()
                partitions.setdefault(name, set()).update(ran_on.difference(sure))
    return partitions


def most_in_use(log: Log, held: RecordedProcessors) -> NDArray[np.int64]:
    """Returns the most processors of each owner that jobs held at one time.

    At a moment at which one job ends and another starts, the first has left already.

    Args:
        log: when jobs started, and how long they took; those with an unknown start do not count.
        held: whose processors each job of the log held.

    Returns:
        int64[names of the owners].
    """
    job = np.repeat(np.arange(len(log.job)), np.diff(held.first))
    counted = (held.owners.codes != UNKNOWN) & (log.start[job] != UNKNOWN)
    job, processors = job[counted], held.processors[counted]
    owner = np.tile(held.owners.codes[counted], 2)
    time = np.concatenate((log.start[job], log.start[job] + log.processing_time[job]))
    change = np.concatenate((processors, -processors))
    order = np.lexsort((change, time, owner))
    most = np.zeros(len(held.owners.names), dtype=np.int64)
    # all that an owner's jobs took they gave back, so that the next owner's sum begins at 0
    np.maximum.at(most, owner[order], np.cumsum(change[order]))
    return most


def sized(
    log: Log, spread: RecordedProcessors, which: NDArray[np.int64]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Returns the nodes of a log, those on which jobs ran first, and their processors."""
    ran_on = spread.owners.names
    nodes = tuple(dict.fromkeys((*ran_on, *log.layout.nodes)))
    held = np.zeros(len(nodes), dtype=np.int64)
    if ran_on and (log.start != UNKNOWN).any():
        held[: len(ran_on)] = most_in_use(log, parts_of(spread, which))
    known = log.layout.nodes
    sizes = [known[n].processors if n in known else m for n, m in zip(nodes, held, strict=True)]
    return nodes, np.array(sizes, dtype=np.int64)


def spread_over_nodes(log: Log) -> tuple[RecordedProcessors, NDArray[np.int64]]:
    """Spreads every different list of nodes with a number of processors over the nodes.

    Returns:
        the processors by node, those of unknown nodes with the owner UNKNOWN; and int64[jobs],
        which of them each job held.
    """
    column = log.labels.get("nodes") or Labels(np.full(len(log.job), UNKNOWN, np.int32), ())
    examples, which = _different(column.codes, log.processors)
    code: dict[str, int] = {}
    first, codes, processors = [0], [], []
    for job in examples.tolist():
        total = int(log.processors[job])
        if column.codes[job] == UNKNOWN:
            codes.append(UNKNOWN)
            processors.append(total)
        else:
            parts = split(total, _hosts(log, column.names[column.codes[job]]), {})
            codes += [code.setdefault(node, len(code)) for node in parts]
            processors += parts.values()
        first.append(len(codes))
    spread = RecordedProcessors(
        np.array(first, dtype=np.int64),
        Labels(np.array(codes, dtype=np.int32), tuple(code)),
        np.array(processors, dtype=np.int64),
    )
    return spread, which


def _different(
    first: NDArray[np.int32], second: NDArray[np.int32] | NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns a job for every different pair, ordered by the first column; and every job's pair."""
    values, rank = np.unique(second, return_inverse=True)
    key = first.astype(np.int64) * len(values) + rank
    _, examples, which = np.unique(key, return_index=True, return_inverse=True)
    return examples, which


def _hosts(log: Log, text: str) -> tuple[str, ...]:
    try:
        return hosts("NodeList", text)
    except UnreadableError as error:
        raise LogError(f"{log.source}: {error}; correct the line, or leave the job out") from None
