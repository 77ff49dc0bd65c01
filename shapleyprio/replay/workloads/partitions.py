"""Keeps the jobs of a workload to the nodes of their partitions (`--respect-partitions`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.split import split
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.workloads.bays import Bays, Nodes
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.nodes import nodes_of, nodes_of_partitions
from shapleyprio.replay.workloads.workload import Consortium, Workload, jobs_of

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
