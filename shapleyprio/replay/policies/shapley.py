"""Policies by Shapley values that are computed every now and then, from what is known then.

In between contributions follow their polynomials, so the consortium's schedule needs no values of
coalitions at every moment, as it does under Ref.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from shapleyprio.replay.coalitions.estimate import Estimate, Estimator, denominator_of
from shapleyprio.replay.coalitions.game import game_of
from shapleyprio.replay.coalitions.knowledge import Knowledge, Predictor, predictor_named
from shapleyprio.replay.coalitions.ways import can_decide
from shapleyprio.replay.engine.codes import KEYED
from shapleyprio.replay.engine.engine import advance_first, exact_worths, older_moments
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

    Contributions are of the first moment at which several organizations compete, and hold for as
    many seconds as the keys have; meanwhile they follow their polynomials. Later ones are computed
    only if they may change who is served (`is_in_doubt`); every decision is as if all were.

    Args:
        world: the consortium as its only coalition, with a row of keys for each organization.
        contributions: from the schedule so far and a moment of it to φ as it is known then.
        length: of the window in seconds.

    Yields:
        The second that was reached, now and then.
    """
    world = packed(world)
    keys, state = world.keys, world.state
    standing = _Standing(world, contributions)
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
                valid_until = standing.write_keys(reached)
        yield until


class _Standing:
    """Where organizations stand at moments at which they compete.

    Args:
        world: the consortium as its only coalition.
        contributions: from the schedule so far and a moment of it to φ as it is known then.
    """

    def __init__(self, world: World, contributions: Callable[[Record, int], Estimate]) -> None:
        self._world, self._contributions = world, contributions
        self._due = -world.keys.rows.shape[1]
        self._made: tuple[int, Estimate] | None = None

    def write_keys(self, t: int) -> int:
        """Writes the keys of a moment; returns the second until which they hold."""
        keys = self._world.keys
        seconds = keys.rows.shape[1]
        if t >= self._due + seconds:
            self._due = t
        if self._made is not None:
            moment, made = self._made
            found = made.later(t - moment)
            if not is_in_doubt(self._world, found, t):
                _write(keys, t, t + 1, found)
                return t + 1
        made = self._contributions(self._world.record, self._due)
        self._made = self._due, made
        until: int = self._due + seconds
        _write(keys, t, until, made.later(t - self._due))
        return until


def is_in_doubt(world: World, found: Estimate, t: int) -> bool:
    """Returns whether an estimate that is made later may serve others first than an earlier one.

    Both know the same of what happened before `found.certain`. In each of the L seconds since then
    a coalition executes at most a part on each of its processors, so its value differs by at most
    L(L + 1)/2 for each. In an ordering and its reverse those before an organization are everybody
    else, once each, so over all orderings what it adds, φ, differs by at most m·L(L + 1)/2, m being
    all processors; so does what a union adds. With a horizon the worth of older parts is
    subtracted, which may differ by as much again.

    Args:
        world: the consortium as its only coalition.
        found: the earlier estimate, as it goes on until t.
        t: a moment at which organizations compete.
    """
    if found.certain is None:
        return True
    state, record, unions = world.state, world.record, world.jobs.unions
    older = older_moments(state)
    got = np.array(exact_worths(state.utility[0], older, t), dtype=object)
    earned = np.array([value for value, _, _ in found.numerators], dtype=object)
    ahead = found.denominator * got - earned
    age = t - found.certain
    most = found.denominator * int(record.owned.sum()) * age * (age + 1) * (1 + (len(older) > 0))
    waits = state.demand_of[0] > 0
    union = unions if len(unions) else np.zeros(len(waits), dtype=np.int64)
    members = [union == one for one in np.unique(union[waits])]
    together = [ahead[those].sum() for those in members]
    apart = [ahead[waits & those] for those in members]
    return any(_are_near(numbers, most) for numbers in (together, *apart))


def _are_near(numbers: Iterable[int], most: int) -> bool:
    """Returns whether some two differ by no more."""
    return any(after - before <= most for before, after in pairwise(sorted(numbers)))


def _write(keys: Keys, begin: int, until: int, found: Estimate) -> None:
    """Writes the keys of a block: the least of −φ + ψ, times the denominator, is served first."""
    keys.begin[0] = begin
    after = np.arange(until - begin)
    parts = after * (after + 1) // 2
    for u, (value, rate, acceleration) in enumerate(found.numerators):
        if keys.high.shape[1] == 0:
            polynomial = wrapped(value) + wrapped(rate) * after + wrapped(acceleration) * parts
            keys.rows[u, : len(after)] = -polynomial
        else:
            exact = -(value + rate * after.astype(object) + acceleration * parts.astype(object))
            keys.rows[u, : len(after)] = [wrapped(number) for number in exact]
            keys.high[u, : len(after)] = [wrapped(number >> 64) for number in exact]
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
    knowledge, whole = Knowledge(workload, predictor), game_of(workload)
    # who keeps estimates wants all; those of coalitions that decide bound no others
    lazily = options.estimated is None and can_decide(whole)

    def contributions(record: Record, t: int) -> Estimate:
        found = estimator.estimate(knowledge.game(record, t))
        if options.estimated is not None:
            options.estimated(t, found)
        return found if lazily else replace(found, certain=None)

    steps = run(world, contributions=contributions, length=length)
    took = timed(steps, options.progress)
    return replace(
        schedule_of(workload, policy, options.seed, world.state, world.record, took),
        contribution=estimator.estimate(whole).contribution,
    )
