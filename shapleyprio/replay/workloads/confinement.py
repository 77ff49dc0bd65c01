"""How much work of a log its partitions kept on some of the nodes; a replay ignores that."""

from __future__ import annotations

import numpy as np

from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.nodes import nodes_of_partitions
from shapleyprio.replay.workloads.workload import Workload


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
