"""Partitions of which all nodes are reserved for some time to come, as for a maintenance.

Slurm starts no job that may run into such a time by its limit. Futures are played as if the clock
stood still meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from shapleyprio.daemon.estimation.messages import WaitingJob
from shapleyprio.daemon.forecasting.messages import Closing, ForecastRequest
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.workloads.log import UNKNOWN

ENDLESS = 2**40
"""Seconds of a job without a limit."""


def with_releases(request: ForecastRequest) -> ForecastRequest:
    """Returns a request whose jobs are not released before a closing that their limit reaches."""

    def released(job: WaitingJob) -> WaitingJob:
        closing = next(iter(request.closings.get(job.partition, ())), None)
        limit = ENDLESS if job.limit is None else job.limit
        if closing is None or request.t + limit <= closing.begin:
            return job
        return replace(job, release=max(job.release, closing.begin))

    if not request.closings:
        return request
    return replace(request, waiting=tuple(map(released, request.waiting)))


def put_off(starts: Ints, limits: Ints, closings: Iterable[Closing]) -> Ints:
    """Returns when jobs start if the clock of their futures stands still in closings.

    Args:
        starts: int64[futures, jobs] of a partition; NEVER for those that do not start.
        limits: int64[jobs], their time limits.
        closings: of the partition.

    >>> put_off(np.array([[5, 8, 10, NEVER]]), np.array([5, 5, 5, 5]), [Closing(10, 30)]).tolist()
    [[5, 30, 30, 4611686018427387904]]
    """
    endings = np.where(limits == UNKNOWN, ENDLESS, limits)
    for begin, end in closings:
        later = np.where(starts < begin, end, starts + (end - begin))
        reaches = (starts != NEVER) & (starts + endings > begin)
        starts = np.where(reaches, later, starts)
    return starts
