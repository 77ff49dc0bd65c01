"""Policies that keep the schedules of coalitions: Ref all of them, Rand those it samples."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np

from shapleyprio.fairness.shapley import owen
from shapleyprio.replay.engine import lattice, sampling
from shapleyprio.replay.engine.beginning import (
    coalitions_in,
    jobs_of,
    members_of,
    record_of,
    ref_world,
    world_of,
)
from shapleyprio.replay.engine.engine import values_at
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.limits import check_orderings, rand_block, ref_block
from shapleyprio.replay.engine.schedule import CoalitionValues, Schedule
from shapleyprio.replay.policies.one_schedule import schedule_of, timed
from shapleyprio.replay.policies.policy import RunOptions
from shapleyprio.replay.workloads.workload import Workload


def ref(workload: Workload, options: RunOptions) -> Schedule:
    """Returns Ref's schedule; its contribution is the exact Shapley value.

    Raises:
        PolicyError: there are too many organizations, processors or jobs.
    """
    k, length = len(workload.organizations), workload.window.length
    # the threads of a pipeline cannot make more room for the past
    pipelined = k >= lattice.FEWEST_ORGANIZATIONS and workload.saturation is None
    pipelined = pipelined and workload.unions is None  # its parts make potentials
    if options.cores > 1 and pipelined:
        world = ref_world(workload, options.seed, more_lists=lattice.parts_for(options.cores))
        steps = lattice.on_many_cores(world, ref_block(workload), length, options.cores)
    else:
        world = ref_world(workload, options.seed)
        steps = lattice.on_one_core(world, length)
    seconds = timed(steps, options.progress)
    values = values_at(world.state, length)
    return replace(
        schedule_of(workload, "ref", options.seed, world.state, world.record, seconds),
        contribution=owen(values.tolist(), workload.unions),
        coalitions=CoalitionValues(np.arange(1, len(values)), values[1:]),
    )


def rand(workload: Workload, options: RunOptions) -> Schedule:
    """Returns Rand's schedule; its contribution is the estimate of the Shapley value.

    Raises:
        PolicyError: there are too many organizations, processors, jobs or orderings, or no
            ordering is to be drawn.
    """
    orderings = orderings_for(workload, options)
    length, count = workload.window.length, len(orderings)
    block = rand_block(workload, count)  # refuses what would not fit below
    members, weights = sampling.weights_of(orderings)
    jobs = jobs_of(workload)
    everybody = 2 ** len(workload.organizations) - 1
    coalitions = members_of(np.append(members, everybody), len(workload.organizations))
    state = coalitions_in(workload, jobs, coalitions, block)
    record = record_of(workload, jobs, len(members), options.seed, wide=block.wide)
    keys = sampling.sampled_keys(len(members), len(workload.organizations), count, block)
    world = world_of(workload, jobs, state, keys, record)
    seconds = timed(sampling.run(world, weights, length), options.progress)
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


def orderings_for(workload: Workload, options: RunOptions) -> Ints:
    """Draws the orderings of Rand: int64[N, k]; in each of them unions stay together."""
    check_orderings(options.orderings)
    random = Random(options.seed)  # noqa: S311  # reproducible draws are what is wanted
    organizations, drawn = range(len(workload.organizations)), []
    for _ in range(options.orderings):
        ordering = sorted(organizations, key=lambda _: random.random())
        if unions := workload.unions:
            place = {one: random.random() for one in unions}
            ordering.sort(key=lambda u: place[unions[u]])
        drawn.append(ordering)
    return np.array(drawn, dtype=np.int64)
