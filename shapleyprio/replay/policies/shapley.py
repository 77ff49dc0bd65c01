"""Policies by Shapley values that are computed every now and then, from what is known then.

In between contributions follow their polynomials, so the consortium's schedule needs no values of
coalitions at every moment, as it does under Ref.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shapleyprio.replay.coalitions.estimate import Estimate, Estimator, denominator_of
from shapleyprio.replay.coalitions.game import game_of
from shapleyprio.replay.coalitions.knowledge import Knowledge
from shapleyprio.replay.coalitions.live import run
from shapleyprio.replay.coalitions.predictors import Predictor, predictor_named
from shapleyprio.replay.engine.keys import keys_of
from shapleyprio.replay.engine.limits import estimated_block
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.state import Record, World
from shapleyprio.replay.policies.one_schedule import one_world, schedule_of, timed
from shapleyprio.replay.policies.policy import RunOptions
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload


def shapley(workload: Workload, options: RunOptions) -> Schedule:
    """Returns the schedule by contributions of which the processing times are known.

    Raises:
        PolicyError: numbers may get larger than can be compared exactly.
    """
    return _schedule(workload, "shapley", None, options)


def live(workload: Workload, options: RunOptions) -> Schedule:
    """Returns the schedule by contributions from what is known at each moment.

    A workload without history has users of whom nothing is known, neither when its window begins
    nor later: every job is then expected to last as long as its limit, or an hour.

    Raises:
        PolicyError: there is no such predictor, or numbers may get larger than can be compared
            exactly.
    """
    predictor = predictor_named(options.estimation.predictor)
    return _schedule(workload, "live", predictor, options)


def expecting_limits(workload: Workload, world: World) -> World:
    """Returns a world that expects no job to outlast its limit, where it has one."""
    limit = np.where(workload.limit == UNKNOWN, workload.processing_time, workload.limit)
    return world._replace(jobs=world.jobs._replace(estimate=limit))


def _schedule(
    workload: Workload, policy: str, predictor: Predictor | None, options: RunOptions
) -> Schedule:
    k, length = len(workload.organizations), workload.window.length
    denominator = denominator_of(k, workload.unions)
    block = estimated_block(workload, options.estimation.recompute, denominator)
    keys = keys_of(rows=k, coalitions=1, block=block, lattice=False)
    world = one_world(workload, keys, options.seed, wide=block.wide, guarantee=options.guarantee)
    estimator = Estimator(
        budget=options.estimation.coalitions,
        seed=options.seed,
        cores=options.cores,
    )
    knowledge = Knowledge(workload, predictor)
    if predictor is not None:  # it is not known beforehand which jobs outlast their limits
        world = expecting_limits(workload, world)

    def contributions(record: Record, t: int) -> Estimate:
        found = estimator.estimate(knowledge.game(record, t))
        options.estimated(t, found)
        return found

    steps = run(world, contributions=contributions, length=length)
    took = timed(steps, options.progress)
    return replace(
        schedule_of(workload, policy, options.seed, world.state, world.record, took),
        contribution=estimator.estimate(game_of(workload)).contribution,
    )
