"""Policies that keep the schedules of coalitions: Ref all of them, Rand those it samples."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np

from shapleyprio.fairness.shapley import shapley
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.kernel import coalitions_in_bays, lattice, pipeline, sampling
from shapleyprio.replay.kernel.bay_state import confined
from shapleyprio.replay.kernel.keys import Ints
from shapleyprio.replay.kernel.state import (
    Coalitions,
    Record,
    World,
    coalitions_in,
    jobs_of,
    members_of,
    record_of,
)
from shapleyprio.replay.kernel.values import values_at
from shapleyprio.replay.limits import rand_block, ref_block
from shapleyprio.replay.policies.one_schedule import schedule_of, timed
from shapleyprio.replay.policies.policy import RunOptions
from shapleyprio.replay.schedule import CoalitionValues, Schedule
from shapleyprio.replay.workload import Workload


def ref(workload: Workload, options: RunOptions) -> Schedule:
    """Returns Ref's schedule; its contribution is the exact Shapley value.

    Raises:
        PolicyError: there are too many organizations, processors or jobs.
    """
    k, length = len(workload.organizations), workload.window.length
    block = ref_block(workload)  # refuses what would need too much memory below
    jobs = jobs_of(workload)
    members = members_of(np.arange(2**k), k)
    state = coalitions_in(workload, jobs, members, block)
    record = record_of(workload, jobs, 2**k - 1, options.seed, wide=block.wide)
    # the threads of a pipeline cannot make more room for the past
    pipelined = k >= pipeline.FEWEST_ORGANIZATIONS and workload.saturation is None
    if workload.bays is not None:
        world = World(jobs, state, lattice.lattice_keys(k, block, by_second=False), record)
        steps = coalitions_in_bays.run_coalitions(
            confined(world, workload.bays), np.zeros((0, k), dtype=np.int64), length
        )
    elif options.cores > 1 and pipelined:
        steps = pipeline.on_many_cores(jobs, state, record, block, length, options.cores)
    else:
        steps = lattice.on_one_core(jobs, state, record, block, length)
    seconds = timed(steps, options.progress)
    return schedule_of_ref(workload, options.seed, state, record, seconds)


def schedule_of_ref(
    workload: Workload, seed: int, state: Coalitions, record: Record, seconds: float
) -> Schedule:
    """Returns what came of all coalitions at the window's end."""
    values = values_at(state, workload.window.length)
    return replace(
        schedule_of(workload, "ref", seed, state, record, seconds),
        contribution=shapley(values.tolist()),
        coalitions=CoalitionValues(np.arange(1, len(values)), values[1:]),
    )


def rand(workload: Workload, options: RunOptions) -> Schedule:
    """Returns Rand's schedule; its contribution is the estimate of the Shapley value.

    Raises:
        PolicyError: there are too many organizations, processors or jobs, or no ordering is to
            be drawn.
    """
    orderings = _orderings(workload, options)
    length, count = workload.window.length, len(orderings)
    block = rand_block(workload, count)  # refuses what would not fit below
    members, weights = sampling.weights_of(orderings)
    jobs = jobs_of(workload)
    everybody = 2 ** len(workload.organizations) - 1
    coalitions = members_of(np.append(members, everybody), len(workload.organizations))
    state = coalitions_in(workload, jobs, coalitions, block)
    record = record_of(workload, jobs, len(members), options.seed, wide=block.wide)
    keys = sampling.sampled_keys(len(members), len(workload.organizations), count, block)
    world = World(jobs, state, keys, record)
    if workload.bays is not None:
        steps = coalitions_in_bays.run_coalitions(confined(world, workload.bays), weights, length)
    else:
        steps = sampling.run(world, weights, length)
    seconds = timed(steps, options.progress)
    values = values_at(state, length)[:-1]
    contribution = tuple(
        Fraction(sum(v * w for v, w in zip(values.tolist(), column, strict=True)), count)
        for column in weights.T.tolist()
    )
    return replace(
        schedule_of(workload, "rand", options.seed, state, record, seconds),
        contribution=contribution,
        coalitions=CoalitionValues(members, values),
    )


def _orderings(workload: Workload, options: RunOptions) -> Ints:
    if options.orderings < 1:
        raise PolicyError(f"rand with {options.orderings} orderings; draw one at least")
    random = Random(options.seed)  # noqa: S311  # reproducible draws are what is wanted
    organizations = range(len(workload.organizations))
    drawn = [sorted(organizations, key=lambda _: random.random()) for _ in range(options.orderings)]
    return np.array(drawn, dtype=np.int64)
