"""Estimates that cannot change who is served are not computed, and nobody sees a difference."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from shapleyprio.replay.coalitions.estimate import Estimate, Estimator
from shapleyprio.replay.coalitions.game import Game
from shapleyprio.replay.engine.beginning import coalitions_of, jobs_of, record_of
from shapleyprio.replay.engine.keys import Block, keys_of
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.state import World
from shapleyprio.replay.policies import Estimation, RunOptions, policy_named
from shapleyprio.replay.policies.shapley import is_in_doubt
from shapleyprio.replay.workloads.choices import Backfill, Wide
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay.strategies import Job, workload_of_jobs
from tests.replay.test_bays import in_bays
from tests.replay.test_unions import united

HOUR = 3600
HOGS = [Job(1, 0, 6 * HOUR) for _ in range(2)]
LATER = [Job(u, 5 * HOUR + 100 * n, 300, limit=400) for n in range(30) for u in (0, 1)]


@st.composite
def catching_up(draw: st.DrawFn) -> Workload:
    """One organization has all processors for hours, then many jobs of everybody wait."""
    random = Random(draw(st.integers(0, 2**32)))
    owned = draw(st.lists(st.integers(0, 3), min_size=2, max_size=4).filter(any))
    wide: Wide = draw(st.sampled_from(["expand", "rigid"]))
    backfill: Backfill = draw(st.sampled_from(["none", "easy"])) if wide == "rigid" else "none"
    hours = draw(st.sampled_from([1, 4, 8]))
    mean = draw(st.sampled_from([60, 300, 1200]))
    hogs = [Job(0, random.randrange(60), hours * HOUR, limit=10 * HOUR) for _ in range(sum(owned))]
    jobs = [
        Job(
            random.randrange(len(owned)),
            hours * HOUR // 2 + random.randrange(8 * HOUR),
            1 + int(random.expovariate(1 / mean)),
            min(random.randint(1, 3), sum(owned)) if wide == "rigid" else random.randint(1, 3),
            random.choice([UNKNOWN, 2 * HOUR, 4 * HOUR]),
        )
        for _ in range(draw(st.integers(20, 100)))
    ]
    known = [job for job in jobs if job.limit == UNKNOWN or job.processing_time <= job.limit]
    horizon = draw(st.none() | st.integers(600, 12 * HOUR))
    return workload_of_jobs(
        owned, [*hogs, *known], 12 * HOUR, wide=wide, backfill=backfill, horizon=horizon
    )


def decided(
    workload: Workload, policy: str, recompute: int
) -> tuple[Schedule, list[int], Schedule, list[int]]:
    """The schedule and of which seconds estimates were computed, and both if all of them are."""
    estimation, kept, computed = Estimation(recompute=recompute), list[int](), list[int]()
    estimate = Estimator.estimate

    def noting(self: Estimator, game: Game) -> Estimate:
        computed.append(game.until)
        return estimate(self, game)

    schedule = policy_named(policy).schedule
    with patch.object(Estimator, "estimate", noting):
        found = schedule(workload, RunOptions(estimation=estimation))
    every = schedule(
        workload, RunOptions(estimation=estimation, estimated=lambda t, _: kept.append(t))
    )
    return found, computed[:-1], every, kept  # the last one is of the window's end


@settings(deadline=None, max_examples=examples(100))
@given(
    catching_up() | united(catching_up()) | in_bays(catching_up(), horizons=False),
    st.sampled_from(["shapley", "live"]),
    st.sampled_from([1, 30, 700]),
)
def test_every_decision_is_as_if_all_estimates_were_computed(
    workload: Workload, policy: str, recompute: int
) -> None:
    found, computed, every, kept = decided(workload, policy, recompute)
    event("all computed" if computed == kept else "some not computed")
    assert found.job.tolist() == every.job.tolist()
    assert found.start.tolist() == every.start.tolist()
    assert found.owner.tolist() == every.owner.tolist()
    assert set(computed) <= set(kept)


@pytest.mark.parametrize(
    ("policy", "computed_are"),
    [("shapley", [21_600, 33_655, 42_768]), ("live", [21_600, 30_653, 39_742])],
)
def test_an_estimate_that_comes_into_doubt_late_is_of_the_moment_at_which_it_was_due(
    policy: str, computed_are: list[int]
) -> None:
    """The first one catches up between two moments at which estimates are due."""
    later = [
        Job(u, 5 * HOUR + 20 * n, 60 + 7 * (n % 11), limit=400) for n in range(500) for u in (0, 1)
    ]
    workload = workload_of_jobs([1, 1], [*HOGS, *later], 36 * HOUR)
    found, computed, every, kept = decided(workload, policy, recompute=3000)
    assert found.start.tolist() == every.start.tolist()
    assert computed == computed_are
    assert set(computed) < set(kept)


@pytest.mark.parametrize("policy", ["shapley", "live"])
def test_who_is_far_behind_is_served_without_an_estimate(policy: str) -> None:
    """The second one's jobs have both processors for six hours before the first one has any."""
    workload = workload_of_jobs([1, 1], [*HOGS, *LATER], 12 * HOUR)
    found, computed, every, kept = decided(workload, policy, recompute=30)
    assert found.start.tolist() == every.start.tolist()
    assert computed == [6 * HOUR]
    assert len(kept) == 15


def test_all_estimates_are_computed_where_coalitions_may_cease_to_decide() -> None:
    """With so many organizations the last jobs are too many for it."""
    many = [Job(0, 11 * HOUR, 1) for _ in range(2**14)]
    workload = workload_of_jobs([1, 1, *[0] * 8], [*HOGS, *LATER, *many], 12 * HOUR)
    found, computed, every, kept = decided(workload, "live", recompute=300)
    assert found.start.tolist() == every.start.tolist()
    assert computed == kept


# what is in doubt

CERTAIN, MOMENT = 1000, 1010
BOUND = 4 * 10 * 11
"""Of four processors, ten seconds after what is certain: 4·L(L + 1)."""


def is_doubtful(
    earned: list[int],
    *,
    waiting: list[int],
    unions: tuple[int, ...] | None = None,
    horizon: int | None = None,
) -> bool:
    """Whether it is, for organizations of one processor each that have got nothing."""
    k = len(earned)
    workload = workload_of_jobs([1] * k, [Job(0, 0, 1)], 2000, horizon=horizon)
    workload = replace(workload, unions=unions)
    jobs = jobs_of(workload)
    everybody = np.ones((1, k), dtype=np.bool_)
    state = coalitions_of(jobs, workload.owned, everybody, wide=False, horizon=horizon, seconds=1)
    state.demand_of[0, waiting] = 1
    keys = keys_of(rows=k, coalitions=1, block=Block(1, wide=False), lattice=False)
    world = World(jobs, state, keys, record_of(workload, jobs, 0, seed=0, wide=False))
    numerators = tuple((3 * value, 0, 0) for value in earned)
    found = Estimate(
        numerators=numerators, denominator=3, error=np.zeros(k), coalitions=2**k, certain=CERTAIN
    )
    return is_in_doubt(world, found, MOMENT)


@pytest.mark.parametrize(("horizon", "bound"), [(None, BOUND), (100, 2 * BOUND)])
def test_the_order_is_in_doubt_within_what_may_have_been_executed_since(
    horizon: int | None, bound: int
) -> None:
    for more, doubtful in ((0, True), (bound, True), (bound + 1, False)):
        earned = [5, 9, 5 + more, 9]
        assert is_doubtful(earned, waiting=[0, 2], horizon=horizon) is doubtful
        assert is_doubtful(earned[::-1], waiting=[3, 1], horizon=horizon) is doubtful
    assert not is_doubtful([5, 5, 5, 5], waiting=[3])


def test_unions_are_compared_by_what_all_their_members_have_and_members_among_themselves() -> None:
    unions, far = (0, 0, 1, 1), BOUND + 1
    assert not is_doubtful([0, 5, 0, 5 + far], waiting=[0, 2], unions=unions)
    assert is_doubtful([0, far, far, 0], waiting=[0, 2], unions=unions)
    assert is_doubtful([0, 0, 3 * far, 0], waiting=[0, 1, 2], unions=unions)
    assert not is_doubtful([0, 0, 3 * far, 0], waiting=[0, 2], unions=unions)
