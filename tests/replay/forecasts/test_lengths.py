"""Lengths are drawn from survivors of the user's past jobs, and of others'."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay.forecasts.lengths import Lengths
from shapleyprio.replay.workloads.log import UNKNOWN
from tests.replay.coalitions.test_predictors import EITHER, USERS


def drawn(
    predictor: Lengths, jobs: list[tuple[int, int, int]], *, times: int = 50
) -> list[list[int]]:
    user, limit, elapsed = np.array(jobs, dtype=np.int64).reshape(-1, 3).T
    found = predictor.draw(user, limit, elapsed, times, np.random.default_rng(1))
    return [list(map(int, column)) for column in found.T]


@given(
    st.lists(st.tuples(USERS, EITHER, st.integers(1, 10_000)), max_size=8),
    st.lists(st.tuples(USERS, EITHER, st.integers(0, 20_000)), max_size=6),
)
def test_every_draw_goes_on_and_ends_within_the_limit_if_that_has_not_passed(
    past: list[tuple[int, int, int]], jobs: list[tuple[int, int, int]]
) -> None:
    predictor = Lengths()
    for job in past:
        predictor.learn(*job)
    for (_, limit, elapsed), of_job in zip(jobs, drawn(predictor, jobs, times=3), strict=True):
        assert min(of_job) > elapsed
        assert limit <= elapsed or max(of_job) <= limit


def test_most_draws_are_of_the_users_survivors_with_the_same_limit_and_some_of_others() -> None:
    predictor = Lengths()
    for seconds in range(1, 21):
        predictor.learn(1, 100, seconds)
        predictor.learn(1, 50, 40)
        predictor.learn(2, 100, 90)
    (found,) = drawn(predictor, [(1, 100, 10)], times=2000)
    own = [seconds for seconds in found if 10 < seconds <= 20]
    assert set(own) == set(range(11, 21))
    assert {seconds for seconds in found if seconds not in own} <= {*range(11, 21), 90}
    assert 10 / 13 <= len(own) / len(found) < 1


def test_in_one_draw_the_jobs_of_a_user_last_as_long_and_those_of_another_do_not() -> None:
    predictor = Lengths()
    for seconds in range(1, 21):
        for user in (1, 2):
            predictor.learn(user, 100, 4 * seconds)
    one, same, other = drawn(predictor, [(1, 100, 0), (1, 100, 0), (2, 100, 0)])
    assert one == same
    assert one != other


def test_of_whom_nothing_is_known_half_last_as_long_again() -> None:
    (found,) = drawn(Lengths(), [(UNKNOWN, UNKNOWN, 10_000)], times=2000)
    assert sorted(found)[1000] == pytest.approx(20_000, rel=0.1)
