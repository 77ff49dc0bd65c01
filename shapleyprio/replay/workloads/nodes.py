"""Nodes and partitions of a log: what its jobs held of them, and workloads kept to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.runs import split
from shapleyprio.replay.errors import LogError, WorkloadError
from shapleyprio.replay.workloads.bays import Bays, Nodes
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log, RecordedProcessors
from shapleyprio.replay.workloads.workload import Consortium, Workload, jobs_of, parts_of
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


def confined_share(log: Log, workload: Workload) -> float:
    """Returns what share of a workload's processor-seconds could run on some nodes only.

    That is the work of partitions whose jobs ran on fewer nodes than all jobs of the log together:
    a log does not say which nodes a partition has. In a pool it is all work, on one's own cluster.

    Args:
        log: that was read.
        workload: jobs of that log.

    Returns:
        From 0 to 1; 0 where the log does not name partitions and nodes.

    Raises:
        LogError: a list of nodes cannot be read.
    """
    if log.clusters:
        return 1.0
    found = nodes_of_partitions(log)
    nodes = len(set().union(*found.values()))
    confined = {name for name, ran_on in found.items() if len(ran_on) < nodes}
    if not confined or "partition" not in log.labels:
        return 0.0
    column = log.labels["partition"]
    is_confined = np.array([*(name in confined for name in column.names), False])
    work = workload.processors.astype(np.float64) * workload.processing_time
    return float(work[is_confined[column.codes[workload.position]]].sum() / work.sum())


MOST_PLACES = 2**13 - 1
"""Bays times organizations; a place has so many bits in what a running job is packed into."""

ANY = ""
"""The partition of jobs of which the log names none: all nodes."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A cluster cut into bays; the names are those of `Bays`, its partition for all of its log."""

    partitions: tuple[str, ...]
    reach: NDArray[np.bool_]
    owned: NDArray[np.int64]
    partition: NDArray[np.int64]


def kept_to_partitions(log: Log, consortium: Consortium, workload: Workload) -> Workload:
    """Returns a workload whose jobs only get processors of nodes that their partitions have.

    A partition has the nodes on which its jobs ran, anywhere in the log. Nodes in exactly the same
    partitions are a bay. A job takes processors of bays in the fewest partitions first, among
    these by the partitions' names. An organization's processors are in the bays of its nodes, in
    proportion to what was in use there; those of one without such nodes are spread over all bays.

    In a pool all this is so at each cluster, and a job only gets processors of its own; a cluster
    whose log does not name partitions and nodes is one bay.

    Args:
        log: that was read.
        consortium: of that log.
        workload: jobs of that log.

    Returns:
        The same workload if every job may run anywhere. Else it lacks the jobs of partitions in
        which no organization has processors and, if jobs are rigid, those wider than their
        partition.

    Raises:
        WorkloadError: the log names neither clusters nor partitions and nodes, or there are too
            many bays.
        LogError: a list of nodes cannot be read.
    """
    if log.clusters:
        cuts = [
            _by_partitions(one, members) or _uncut(one, members)
            for one, members in zip(log.clusters, consortium.clusters, strict=True)
        ]
        return _kept(log, cuts, workload)
    cut = _by_partitions(log, consortium)
    if cut is None:
        raise WorkloadError(
            f"{log.source}: does not name the nodes and partitions of its jobs, so they cannot be "
            "kept to their partitions; leave --respect-partitions out"
        )
    return _kept(log, [cut], workload)


def kept_to_clusters(log: Log, consortium: Consortium, workload: Workload) -> Workload:
    """Returns a workload whose jobs only get processors of their clusters.

    A cluster is one bay. What a coalition is worth is then the sum of what it is worth at each
    cluster, and so are contributions: the game that the daemons of a pool play.

    Args:
        log: that was read.
        consortium: of that log.
        workload: jobs of that log.

    Returns:
        The same workload if the log is of one cluster; else as with `kept_to_partitions`.

    Raises:
        WorkloadError: there are too many clusters.
    """
    if not log.clusters:
        return workload
    parts = zip(log.clusters, consortium.clusters, strict=True)
    return _kept(log, [_uncut(one, members) for one, members in parts], workload)


def _by_partitions(log: Log, consortium: Consortium) -> _Cut | None:
    """Cuts a cluster into bays; None if its log does not name partitions and nodes."""
    found = nodes_of_partitions(log)
    if not found or "partition" not in log.labels:
        return None
    nodes = consortium.nodes or nodes_of(log)
    partitions = (ANY, *sorted(found))
    of_node = {name: tuple(sorted(p for p in found if name in found[p])) for name in nodes.names}
    bays = sorted(set(of_node.values()), key=lambda names: (len(names), names))
    reach = np.array([[p == ANY or p in names for names in bays] for p in partitions])
    owned = _owned(nodes, [bays.index(of_node[name]) for name in nodes.names], consortium.owned)
    column = log.labels["partition"]
    code = np.array([*(partitions.index(n) if n in found else 0 for n in column.names), 0])
    return _Cut(partitions, reach, owned, code[column.codes])


def _uncut(log: Log, consortium: Consortium) -> _Cut:
    """Takes a cluster as one bay."""
    anywhere = np.zeros(len(log.job), dtype=np.int64)
    return _Cut((ANY,), np.ones((1, 1), dtype=np.bool_), consortium.owned[None, :], anywhere)


def _kept(log: Log, cuts: Sequence[_Cut], workload: Workload) -> Workload:
    """Puts the bays of all clusters beside each other."""
    owned = np.concatenate([cut.owned for cut in cuts])
    if owned.size > MOST_PLACES:
        raise WorkloadError(
            f"{log.source}: its partitions cut the nodes into {len(owned)} bays, and with "
            f"{len(workload.owned)} organizations a replay takes "
            f"{MOST_PLACES // len(workload.owned)}; "
            "leave --respect-partitions out"
        )
    partitions: list[str] = []
    codes = []
    reach = np.zeros((sum(len(cut.partitions) for cut in cuts), len(owned)), dtype=np.bool_)
    bay = 0
    for one, cut in zip(log.clusters or (log,), cuts, strict=True):
        row = len(partitions)
        rows, columns = cut.reach.shape
        reach[row : row + rows, bay : bay + columns] = cut.reach
        codes.append(cut.partition + row)
        partitions += [
            "/".join(filter(None, (one.cluster, name))) if log.clusters else name
            for name in cut.partitions
        ]
        bay += columns
    partition = np.concatenate(codes)[workload.position].astype(np.int32)
    confined = Bays(partitions=tuple(partitions), reach=reach, owned=owned, partition=partition)
    return _without_misfits(replace(workload, bays=confined))


def _owned(nodes: Nodes, bay: list[int], owned: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns int64[bays, organizations]: each organization's processors, split over the bays."""
    bays = max(bay) + 1
    sizes = np.zeros((bays, len(owned) + 1), dtype=np.int64)  # the last one is for UNKNOWN
    np.add.at(sizes, (np.array(bay), nodes.owner), nodes.processors)
    everybodys = sizes.sum(axis=1)
    names = [str(number) for number in range(bays)]
    found = np.zeros((bays, len(owned)), dtype=np.int64)
    for u, processors in enumerate(owned.tolist()):
        size = sizes[:, u]
        if not size.any():
            left = np.maximum(everybodys - found.sum(axis=1), 0)
            size = left if left.any() else everybodys
        parts = split(processors, names, dict(zip(names, size.tolist(), strict=True)))
        found[:, u] = [parts[name] for name in names]
    return found


def _without_misfits(workload: Workload) -> Workload:
    """Leaves out what can never start, and the bays where nothing is confined."""
    bays = workload.bays
    assert bays is not None
    available = bays.processors[bays.partition]
    nowhere = available == 0
    too_wide = ~nowhere & (workload.wide == "rigid") & (workload.processors > available)
    fits = np.flatnonzero(~(nowhere | too_wide))
    if len(fits) == 0:
        raise WorkloadError(
            "no job has a partition with enough processors of these organizations; leave "
            "--respect-partitions out"
        )
    counts = {"partition_without_processors": nowhere, "too_wide": too_wide}
    left_out = dict(workload.left_out)
    for reason, missing in counts.items():
        if missing.any():
            left_out[reason] = left_out.get(reason, 0) + int(missing.sum())
    kept = replace(jobs_of(workload, fits), left_out=left_out)
    filled = bays.owned.any(axis=1)
    anywhere = bool(bays.reach[bays.partition[fits]][:, filled].all())
    return replace(kept, bays=None) if anywhere else kept
