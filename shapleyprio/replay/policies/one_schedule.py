"""Policies that look at one schedule alone: by a decision in C about its jobs, or as recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine import engine
from shapleyprio.replay.engine.beginning import coalitions_of, jobs_of, record_of, world_of
from shapleyprio.replay.engine.engine import exact_worths
from shapleyprio.replay.engine.keys import Keys, no_keys
from shapleyprio.replay.engine.limits import check_range
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.state import Coalitions, Record, World
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.measures.measures import contributed
from shapleyprio.replay.policies.policy import RunOptions
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.workloads.choices import Guarantee
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload, parts_of

LONGEST = 38
"""2 to this are more seconds than a window has."""


def compiled_decisions(
    workload: Workload, policy: str, code: int, options: RunOptions, half_life: int | None = None
) -> Schedule:
    """Returns the schedule of a policy whose decision is in C (`native/choice.c`).

    Args:
        workload: what is to be scheduled.
        policy: its name.
        code: of its decision, in `engine.codes`.
        options: how it is run.
        half_life: seconds after which usage counts half; None if the decision asks for none.

    Raises:
        PolicyError: numbers may get larger than can be compared exactly.
    """
    wide = check_range(workload)
    world = one_world(workload, no_keys(), options.seed, wide=wide, guarantee=options.guarantee)
    if half_life is not None:
        world = world._replace(record=world.record._replace(decay=steps_of(half_life)))
    steps = engine.run(code, world, workload.window.length)
    seconds = timed(steps, options.progress)
    return schedule_of(workload, policy, options.seed, world.state, world.record, seconds)


def one_world(
    workload: Workload, keys: Keys, seed: int, *, wide: bool, guarantee: Guarantee | None = None
) -> World:
    """Returns the world of the coalition of all, whose schedule is recorded."""
    jobs = jobs_of(workload)
    everybody = np.ones((1, len(workload.owned)), np.bool_)
    state = coalitions_of(jobs, workload.owned, everybody, wide=wide, horizon=workload.saturation)
    record = record_of(workload, jobs, 0, seed, wide=wide, guarantee=guarantee)
    return world_of(workload, jobs, state, keys, record)


def timed(steps: Iterator[int], progress: ProgressCallback) -> float:
    """Takes all steps, and returns the seconds they took."""
    began = perf_counter()
    for reached in steps:
        progress(reached)
    return perf_counter() - began


def schedule_of(
    workload: Workload,
    policy: str,
    seed: int,
    state: Coalitions,
    record: Record,
    seconds: float,
) -> Schedule:
    """Returns what the engine recorded; its contribution is φ̃."""
    size = int(record.size[0])
    worths = exact_worths(record.contribution, state.past.contribution, workload.window.length)
    return Schedule(
        policy=policy,
        seed=seed,
        job=record.job[:size].astype(np.int64),
        start=record.start[:size],
        owner=record.owner[:size],
        bay=record.bay[:size],
        copies=record.copies[:size].astype(np.int64),
        contribution=tuple(map(Fraction, worths)),
        seconds=seconds,
    )


def steps_of(half_life: int) -> NDArray[np.float64]:
    """Returns how usage decays within 1, 2, 4, ... seconds.

    The numbers are the nearest doubles, on each machine the same.

    Args:
        half_life: seconds after which processor time counts half.

    Returns:
        [2, steps]: what is left of a processor-second, and what a processor that works meanwhile
        adds, in processor-seconds.

    >>> steps_of(2).round(3)[:, :3].tolist()
    [[0.707, 0.5, 0.25], [0.845, 1.443, 2.164]]
    """
    with localcontext() as context:
        context.prec = 50
        left = [Decimal(2) ** (Decimal(-(2**step)) / half_life) for step in range(LONGEST)]
        mean_life = half_life / Decimal(2).ln()
        gained = [mean_life * (1 - rest) for rest in left]
    return np.array([left, gained], dtype=np.float64)


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
