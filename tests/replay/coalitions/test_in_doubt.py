"""Estimates that cannot change who is served are not computed, and nobody sees a difference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from shapleyprio.replay.coalitions.estimate import Estimate, Estimator
from shapleyprio.replay.coalitions.game import Game
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.policies import Estimation, RunOptions, policy_named
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay.strategies import Job, workload_of_jobs, workloads
from tests.replay.test_bays import in_bays
from tests.replay.test_unions import united

ANY = workloads(lengths=st.integers(20, 40), jobs=30, horizons=st.none() | st.integers(1, 30))
WHOLE = workloads(
    lengths=st.integers(20, 40), jobs=30, wide="rigid", backfills=st.sampled_from(["none", "easy"])
)


def slowed(workload: Workload, factor: int) -> Workload:
    """The same with each second taking longer, so that much of what happened is certain."""
    horizon, limit = workload.horizon, workload.limit
    return replace(
        workload,
        window=replace(workload.window, length=workload.window.length * factor),
        release=workload.release * factor,
        processing_time=workload.processing_time * factor,
        limit=limit * factor * (limit != UNKNOWN) + UNKNOWN * (limit == UNKNOWN),
        horizon=None if horizon is None else horizon * factor,
    )


def decided(workload: Workload, policy: str, recompute: int) -> tuple[Schedule, Schedule, int]:
    """The schedule, the same if every estimate is computed, and how many these are."""
    estimation, kept = Estimation(recompute=recompute), list[int]()
    schedule = policy_named(policy).schedule
    found = schedule(workload, RunOptions(estimation=estimation))
    every = schedule(
        workload, RunOptions(estimation=estimation, estimated=lambda t, _: kept.append(t))
    )
    return found, every, len(kept)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of which seconds estimates were computed."""
    seconds, estimate = list[int](), Estimator.estimate

    def noting(self: Estimator, game: Game) -> Estimate:
        seconds.append(game.until)
        return estimate(self, game)

    monkeypatch.setattr(Estimator, "estimate", noting)
    return seconds


@settings(deadline=None, max_examples=examples(100))
@given(
    ANY | WHOLE | united(ANY | WHOLE) | in_bays(ANY | WHOLE, horizons=False),
    st.sampled_from([60, 400, 1500]),
    st.sampled_from(["shapley", "live"]),
    st.sampled_from([1, 30, 700]),
)
def test_every_decision_is_as_if_all_estimates_were_computed(
    drawn: Workload, factor: int, policy: str, recompute: int
) -> None:
    found, every, count = decided(slowed(drawn, factor), policy, recompute)
    event("several estimates" if count > 1 else "one or none")
    for one, other in ((found.job, every.job), (found.start, every.start)):
        assert one.tolist() == other.tolist()
    assert found.owner.tolist() == every.owner.tolist()


@pytest.mark.parametrize("policy", ["shapley", "live"])
def test_who_is_far_behind_is_served_without_an_estimate(policy: str, computed: list[int]) -> None:
    """The second one's jobs have both processors for six hours before the first one has any."""
    hour = 3600
    hogs = [Job(1, 0, 6 * hour) for _ in range(2)]
    later = [Job(u, 5 * hour + 100 * n, 300, limit=400) for n in range(30) for u in (0, 1)]
    found, every, count = decided(
        workload_of_jobs([1, 1], [*hogs, *later], 12 * hour), policy, recompute=30
    )
    assert found.start.tolist() == every.start.tolist()
    assert computed[:2] == [6 * hour, 12 * hour]  # the last one is of the window's end
    assert count == 15
