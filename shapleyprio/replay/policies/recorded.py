"""The recorded history as a schedule."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.measures.measures import contributed
from shapleyprio.replay.policies.policy import RunOptions
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload, parts_of


def recorded(workload: Workload, options: RunOptions) -> Schedule:
    """Returns the starts that the log has.

    Raises:
        PolicyError: the log has none.
    """
    if (workload.start == UNKNOWN).all():
        raise PolicyError("recorded: the log does not say when jobs started; leave it out")
    started = np.flatnonzero((workload.start >= 0) & (workload.start < workload.window.length))
    order = started[np.lexsort((workload.position[started], workload.start[started]))]
    placed = workload.placed
    if placed is None:
        job, owner = order, np.full(len(order), UNKNOWN)
        copies = workload.processors[order]
    else:
        placed = parts_of(placed, order)
        job = np.repeat(order, np.diff(placed.first))
        owner, copies = placed.owners.codes, placed.processors
    schedule = Schedule(
        policy="recorded",
        seed=options.seed,
        job=job,
        start=workload.start[job],
        owner=owner.astype(np.int32),
        copies=copies,
        contribution=None,
        seconds=0.0,
    )
    if placed is None:
        return schedule
    return replace(schedule, contribution=tuple(map(Fraction, contributed(workload, schedule))))
