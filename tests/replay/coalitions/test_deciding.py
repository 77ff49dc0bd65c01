"""Coalitions that decide by contributions of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shapleyprio.replay.coalitions.contributions import all_coalitions
from shapleyprio.replay.coalitions.estimate import Estimator
from shapleyprio.replay.coalitions.first_come import values_of
from shapleyprio.replay.coalitions.game import Game
from shapleyprio.replay.coalitions.ways import MOST_CHANGES, DecidingCoalitions, can_decide
from shapleyprio.replay.policies import Estimation, run_policy
from shapleyprio.replay.workloads.workload import Workload
from tests.replay.coalitions.games import (
    check_growing,
    games,
    growing_games,
    kept_whole,
    literal_decided_values,
)
from tests.replay.strategies import workloads


@given(games(organizations=3, jobs=8))
def test_coalitions_decide_as_under_ref(game: Game) -> None:
    assume(can_decide(game))
    assert DecidingCoalitions().values(game).tolist() == literal_decided_values(game)


@given(kept_whole(games(organizations=3, jobs=8).map(lambda game: [game])))
def test_coalitions_keep_jobs_whole_as_ref_does(drawn: list[Game]) -> None:
    (game,) = drawn
    assume(can_decide(game))
    assert DecidingCoalitions().values(game).tolist() == literal_decided_values(game)


GROWING = growing_games(organizations=3)


@given(GROWING | kept_whole(GROWING), st.integers(1, 9))
def test_values_do_not_depend_on_what_was_decided_before(grown: list[Game], block: int) -> None:
    check_growing(grown, block)


def test_schedules_go_on_as_a_job_runs_and_when_it_has_ended() -> None:
    deciding = DecidingCoalitions(longest_block=4)
    for until in range(6, 60):
        game = game_of_two_jobs(until, second_ends=25)
        assert deciding.values(game).tolist() == DecidingCoalitions().values(game).tolist()
        reached = deciding._values._at_end._reached
        assert reached is not None
        assert until - reached.seconds[0] <= 4, until


CUT = workloads(organizations=st.integers(1, 4), lengths=st.integers(1, 40), jobs=10)
WHOLE = workloads(
    organizations=st.integers(1, 4),
    lengths=st.integers(1, 40),
    jobs=10,
    wide="rigid",
    backfills=st.sampled_from(["none", "easy"]),
)


@given(CUT | WHOLE)
def test_who_always_computes_anew_decides_as_ref_does(workload: Workload) -> None:
    fair = run_policy(workload, "ref")
    found = run_policy(workload, "shapley", estimation=Estimation(recompute=1))
    assert sorted(zip(found.job, found.start, strict=True)) == sorted(
        zip(fair.job, fair.start, strict=True)
    )


def game_of_two_jobs(until: int, *, second_ends: int) -> Game:
    """Two that one processor runs one after the other; the first one has ended after 5 seconds."""
    ended = until >= second_ends
    ran = min(until, second_ends) - 5
    return Game(
        organization=np.array([0, 0]),
        release=np.array([0, 0]),
        processing_time=np.array([5, ran if ended else 100]),
        processors=np.array([1, 1]),
        since=np.array([0]),
        owned=np.array([[1]]),
        until=until,
        certain=np.array([5, ran]),
    )


GAME = Game(
    organization=np.array([0, 0, 1]),
    release=np.array([0, 0, 3]),
    processing_time=np.array([9, 9, 20]),
    processors=np.array([2, 2, 1]),
    since=np.array([0]),
    owned=np.array([[1, 1]]),
    until=50,
)


MANY = np.arange(MOST_CHANGES + 2)


def test_a_processor_that_comes_is_given_to_whom_the_coalition_owes_most() -> None:
    game = replace(
        GAME,
        processors=np.array([2, 2, 2]),
        since=np.array([0, 5, 6]),
        owned=np.array([[1, 1], [1, 0], [1, 1]]),
        until=7,
    )
    assert can_decide(game)
    found = DecidingCoalitions().values(game)
    assert found.tolist() == literal_decided_values(game)
    # both work on to the end; what the second one left at 5 is not free before the first ends
    assert found[-1].tolist() == [2 * (7 * 8 // 2), 14, 2]


@pytest.mark.parametrize(
    "game",
    [
        replace(GAME, since=MANY, owned=np.stack((MANY % 2, MANY % 3), axis=1)),
        replace(GAME, owned=np.array([[0, 0]])),
        replace(GAME, processors=np.full(3, 2**20), owned=np.array([[2**20, 2**20]])),
        replace(GAME, **{name: getattr(GAME, name)[:0] for name in (
            "organization", "release", "processing_time", "processors"
        )}),
    ],
    ids=["processors often change", "no processors", "much room needed", "no jobs"],
)  # fmt: skip
def test_where_coalitions_cannot_decide_they_run_first_come_first_served(game: Game) -> None:
    assert can_decide(GAME)
    assert not can_decide(game)
    coalitions = all_coalitions(2)
    assert (Estimator(budget=1).values(game, coalitions) == values_of(game, coalitions)).all()


def test_where_it_takes_too_long_they_run_first_come_first_served() -> None:
    everybody, few = np.ones((1, 2), dtype=np.bool_), 3 * 2**2
    assert can_decide(GAME, few)
    assert not can_decide(GAME, few - 1)
    decided = Estimator(budget=1, most_starts=few).values(GAME, everybody)
    assert (decided == DecidingCoalitions().values(GAME)[-1]).all()
    first_come = Estimator(budget=1, most_starts=0).values(GAME, everybody)
    assert (first_come == values_of(GAME, everybody)).all()
    assert (decided != first_come).any()
