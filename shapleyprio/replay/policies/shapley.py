"""Policies by Shapley values that are computed every now and then, from what is known then.

In between contributions follow their polynomials, so the consortium's schedule needs no values of
coalitions at every moment, as it does under Ref.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from shapleyprio.replay.coalitions.estimate import Estimate, Estimator, denominator_of
from shapleyprio.replay.coalitions.game import game_of
from shapleyprio.replay.coalitions.knowledge import Knowledge, Predictor, predictor_named
from shapleyprio.replay.engine.codes import KEYED
from shapleyprio.replay.engine.engine import advance_first
from shapleyprio.replay.engine.keys import Keys, keys_of, wrapped
from shapleyprio.replay.engine.limits import estimated_block
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.state import Record, World, pieces_of
from shapleyprio.replay.native import packed
from shapleyprio.replay.policies.one_schedule import one_world, schedule_of, timed
from shapleyprio.replay.policies.policy import RunOptions
from shapleyprio.replay.workloads.workload import Workload


def run(
    world: World,
    *,
    contributions: Callable[[Record, int], Estimate],
    length: int,
) -> Iterator[int]:
    """Brings the consortium's schedule to the end of the window.

    Contributions are computed at the first moment at which several organizations compete, and
    hold for as many seconds as the keys have; meanwhile they follow their polynomials.

    Args:
        world: the consortium as its only coalition, with a row of keys for each organization.
        contributions: from the schedule so far and a moment to φ as it is known then.
        length: of the window in seconds.

    Yields:
        The second that was reached, now and then.
    """
    world = packed(world)
    keys, state, record = world.keys, world.state, world.record
    reached = valid_until = 0
    for until in pieces_of(length):
        while reached < until:
            if reached < valid_until:
                keys.begin[1] = 1
                reached = min(until, valid_until)
                advance_first(KEYED, world, reached)
                continue
            keys.begin[1] = 0
            if advance_first(KEYED, world, until):
                reached = until
            else:
                reached = int(state.now[0])
                keys.begin[0] = reached
                valid_until = reached + keys.rows.shape[1]
                _write(keys, contributions(record, reached))
        yield until


def _write(keys: Keys, found: Estimate) -> None:
    """Writes the keys of a block: the least of −φ + ψ, times the denominator, is served first."""
    after = np.arange(keys.rows.shape[1])
    parts = after * (after + 1) // 2
    for u, (value, rate, acceleration) in enumerate(found.numerators):
        if keys.high.shape[1] == 0:
            polynomial = wrapped(value) + wrapped(rate) * after + wrapped(acceleration) * parts
            keys.rows[u] = -polynomial
        else:
            exact = -(value + rate * after.astype(object) + acceleration * parts.astype(object))
            keys.rows[u] = [wrapped(number) for number in exact]
            keys.high[u] = [wrapped(number >> 64) for number in exact]
        keys.base[u], keys.slope[u] = -float(value), -float(rate)
    keys.factor[0] = found.denominator


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
