"""Time limits of jobs without one: that of their partition, as under Slurm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shapleyprio.common.wording import HOUR
from shapleyprio.replay.workloads.log import UNKNOWN, Log


def with_partition_limits(log: Log) -> Log:
    """Gives each job without a limit its partition's.

    Slurm gives it the partition's MaxTime, which a log does not say. It is not below any job's
    limit or processing time there, so the longest of them counts, rounded up to whole hours. Jobs
    of which the log names no partition are in one of their own.

    Args:
        log: without jobs of unknown processing time.
    """
    lacking = log.limit == UNKNOWN
    if not lacking.any():
        return log
    where = np.zeros(len(log.job), dtype=np.int64)
    for name in ("cluster", "partition"):
        if name in log.labels:
            labels = log.labels[name]
            where = where * (len(labels.names) + 1) + labels.codes - UNKNOWN
    partition = np.unique(where, return_inverse=True)[1]
    longest = np.zeros(int(partition.max()) + 1, dtype=np.int64)
    np.maximum.at(longest, partition, np.maximum(log.limit, log.processing_time))
    hours = -(-longest // HOUR)
    return replace(log, limit=np.where(lacking, HOUR * hours[partition], log.limit))
