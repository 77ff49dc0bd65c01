"""How long jobs are expected to last."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay.coalitions.predictors import (
    DEFAULT_SECONDS,
    Combined,
    LastTwo,
    Limit,
    Predictor,
    Survivors,
    predictor_named,
)
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.policies import PREDICTORS
from shapleyprio.replay.workloads.log import UNKNOWN

USERS = st.integers(-1, 2)
EITHER = st.just(UNKNOWN) | st.integers(1, 10_000)


def expected(predictor: Predictor, user: int, *, limit: int = UNKNOWN, elapsed: int = 0) -> int:
    return int(predictor.predict(np.array([user]), np.array([limit]), np.array([elapsed]))[0])


@pytest.mark.parametrize("name", PREDICTORS)
@given(
    st.lists(st.tuples(USERS, EITHER, st.integers(1, 10_000)), max_size=8),
    st.lists(st.tuples(USERS, EITHER, st.integers(0, 20_000)), max_size=6),
)
def test_every_job_is_expected_to_go_on_and_within_its_limit_if_it_is(
    name: str,
    past: list[tuple[int, int, int]],
    jobs: list[tuple[int, int, int]],
) -> None:
    predictor = predictor_named(name)
    for job in past:
        predictor.learn(*job)
    users, limit, elapsed = np.array(jobs, dtype=np.int64).reshape(-1, 3).T
    found = predictor.predict(users, limit, elapsed)
    assert (found > elapsed).all()
    within = (limit != UNKNOWN) & (elapsed < limit)
    assert (found[within] <= limit[within]).all()


def test_the_last_two_jobs_of_the_same_user_count() -> None:
    predictor = LastTwo()
    assert expected(predictor, 3) == DEFAULT_SECONDS
    predictor.learn(3, 30, 100)
    assert expected(predictor, 3) == 100
    for user, seconds in ((3, 20), (4, 9), (3, 50), (UNKNOWN, 7)):
        predictor.learn(user, UNKNOWN, seconds)
    assert expected(predictor, 3) == (20 + 50) // 2
    assert expected(predictor, 3, elapsed=36) == 2 * 36 + 1
    assert expected(predictor, 3, limit=30) == 30
    assert expected(predictor, UNKNOWN) == DEFAULT_SECONDS


def test_the_limit_counts_and_where_there_is_none_an_hour_or_twice_the_elapsed_time() -> None:
    assert expected(Limit(), 3, limit=600) == 600
    assert expected(Limit(), 3) == DEFAULT_SECONDS
    assert expected(Limit(), 3, elapsed=2 * DEFAULT_SECONDS) == 4 * DEFAULT_SECONDS
    assert expected(Limit(), 3, limit=600, elapsed=600) == 1201


def test_survivors_are_the_past_jobs_that_lasted_longer_and_the_oldest_are_forgotten() -> None:
    predictor = Survivors(past=4)
    for seconds in (10, 30, 100, 20):
        predictor.learn(3, UNKNOWN, seconds)
    assert expected(predictor, 3) == 40
    assert expected(predictor, 3, elapsed=20) == 65
    assert expected(predictor, 3, elapsed=99) == 100
    assert expected(predictor, 3, elapsed=100) == 200
    predictor.learn(3, UNKNOWN, 40)
    assert expected(predictor, 3) == (30 + 100 + 20 + 40) // 4
    assert expected(predictor, 4) == DEFAULT_SECONDS


def test_enough_survivors_count_else_the_last_two_else_the_limit_else_what_there_is() -> None:
    predictor = Combined(past=4, enough=2)
    assert expected(predictor, 3, limit=600) == 600
    assert expected(predictor, 3) == DEFAULT_SECONDS
    for seconds in (1000, 10, 30, 100, 21):
        predictor.learn(3, UNKNOWN, seconds)
    assert expected(predictor, 3) == (10 + 30 + 100 + 21) // 4
    assert expected(predictor, 3, limit=35) == 35
    assert expected(predictor, 3, elapsed=20, limit=600) == (30 + 100 + 21) // 3
    assert expected(predictor, 3, elapsed=40, limit=600) == (100 + 21) // 2
    assert expected(predictor, 3, elapsed=70, limit=600) == 600
    assert expected(predictor, 3, elapsed=70) == 100
    assert expected(predictor, 3, elapsed=100) == DEFAULT_SECONDS
    assert expected(predictor, 4, elapsed=9, limit=600) == 600


def test_jobs_with_the_same_limit_count_first_if_enough_of_them_survive() -> None:
    predictor = Combined(past=4, enough=2)
    for limit, seconds in ((2000, 500), (2000, 700), (UNKNOWN, 900), (60, 20), (60, 40)):
        predictor.learn(3, limit, seconds)
    assert expected(predictor, 3, limit=2000) == 600
    assert expected(predictor, 3, limit=60) == 30
    assert expected(predictor, 3, limit=2000, elapsed=600) == (700 + 900) // 2
    assert expected(predictor, 3, limit=3000) == (700 + 900 + 20 + 40) // 4
    assert expected(predictor, 4, limit=2000) == 2000


def test_an_unknown_predictor_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(PolicyError, match="combined, survivors, last-two, limit"):
        predictor_named("oracle")
