"""Lengths are means or draws of survivors of the user's past jobs, and of others'."""

from __future__ import annotations

from collections.abc import Container

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay.coalitions.survivors import DEFAULT_SECONDS, Survivors
from shapleyprio.replay.workloads.log import UNKNOWN
from tests.replay.coalitions.test_predictors import EITHER, USERS
from tests.replay.strategies import WIDTHS

Asked = tuple[int, int, int, int]
"""User, limit, processors and what has elapsed."""


def drawn(predictor: Survivors, jobs: list[Asked], *, times: int = 50) -> list[list[int]]:
    user, limit, processors, elapsed = np.array(jobs, dtype=np.int64).reshape(-1, 4).T
    random = np.random.default_rng(1)
    found = predictor.draw(user, limit, processors, elapsed, times, random)
    return [list(map(int, column)) for column in found.T]


def means(predictor: Survivors, *jobs: Asked) -> list[int]:
    return [int(mean) for mean in predictor.predict(*np.array(jobs, dtype=np.int64).T)]


def share_of(found: list[int], chosen: Container[int]) -> float:
    return sum(seconds in chosen for seconds in found) / len(found)


@given(
    st.lists(st.tuples(USERS, EITHER, WIDTHS, st.integers(1, 10_000)), max_size=8),
    st.lists(st.tuples(USERS, EITHER, WIDTHS, st.integers(0, 20_000)), max_size=6),
)
def test_every_draw_goes_on_and_ends_within_the_limit_if_that_has_not_passed(
    past: list[Asked], jobs: list[Asked]
) -> None:
    predictor = Survivors()
    for job in past:
        predictor.learn(*job)
    for (_, limit, _, elapsed), of_job in zip(jobs, drawn(predictor, jobs, times=3), strict=True):
        assert min(of_job) > elapsed
        assert limit <= elapsed or max(of_job) <= limit


def test_most_draws_are_of_the_users_survivors_of_the_same_kind_and_some_of_others() -> None:
    predictor = Survivors()
    for seconds in range(1, 21):
        predictor.learn(1, 100, 4, seconds)
        predictor.learn(1, 100, 2, 30)  # another kind: other processors
        predictor.learn(1, 50, 4, 40)  # and another limit
        predictor.learn(2, 100, 4, 90)
    (found,) = drawn(predictor, [(1, 100, 4, 10)], times=2000)
    assert set(found) >= {*range(11, 21), 90}
    assert set(found) <= {*range(11, 21), 30, 90}
    assert 0.65 < share_of(found, range(11, 21)) < 0.85
    assert share_of(found, range(16, 21)) > 1.4 * share_of(found, range(11, 16))  # fading


def test_the_mean_is_of_all_lengths_as_far_as_they_count_and_of_none_beyond_the_limit() -> None:
    predictor = Survivors()
    for seconds in (10, 20, 90):
        predictor.learn(1, UNKNOWN, 4, seconds)
    own, others = (0.81, 0.9, 1), (1, 1, 1)  # the user's fade; all of others count as three

    def mean(*lengths: int) -> int:
        weights = [a + b for a, b in zip(own, others, strict=True)]
        worth = sum(weight * one for weight, one in zip(weights, lengths, strict=True))
        return round(worth / sum(weights))

    assert means(predictor, (1, UNKNOWN, 4, 0), (1, 50, 4, 0)) == [
        mean(10, 20, 90),
        mean(10, 20, 50),
    ]
    assert means(predictor, (2, UNKNOWN, 4, 15)) == [(20 + 90) // 2]
    assert means(predictor, (1, UNKNOWN, 4, 90), (1, 95, 4, 90)) == [DEFAULT_SECONDS, 95]


@given(
    st.lists(st.tuples(USERS, st.just(300), WIDTHS, st.integers(100, 400)), min_size=1, max_size=8),
    st.lists(st.tuples(USERS, EITHER, WIDTHS, st.integers(0, 99)), min_size=1, max_size=6),
)
def test_draws_have_in_the_mean_the_length_that_is_predicted(
    past: list[Asked], jobs: list[Asked]
) -> None:
    predictor = Survivors()
    for job in past:
        predictor.learn(*job)
    found = drawn(predictor, jobs, times=2000)
    for mean, of_job in zip(means(predictor, *jobs), found, strict=True):
        assert mean == pytest.approx(sum(of_job) / 2000, abs=15)


@pytest.mark.parametrize(("processors", "limit", "expected"), [(4, 100, 5), (8, 100, 6), (8, 9, 7)])
def test_a_wider_kind_counts_where_there_are_too_few_of_the_narrower(
    processors: int, limit: int, expected: int
) -> None:
    predictor = Survivors()
    for job in [(4, 100, 5)] * 10 + [(2, 100, 6)] * 20 + [(2, 50, 7)] * 20:
        of_width, of_limit, seconds = job
        predictor.learn(1, of_limit, of_width, seconds)
    (found,) = drawn(predictor, [(1, limit, processors, 0)], times=200)
    assert sorted(found)[100] == expected


def test_in_one_draw_the_jobs_of_a_user_last_about_as_long_and_those_of_another_do_not() -> None:
    predictor = Survivors()
    for seconds in range(1, 21):
        for user in (1, 2):
            predictor.learn(user, 100, 1, 4 * seconds)
    jobs = [(1, 100, 1, 0), (1, 100, 1, 0), (2, 100, 1, 0)]
    one, same, other = drawn(predictor, jobs, times=2000)
    assert 0.65 < np.corrcoef(one, same)[0, 1] < 0.85
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.1
    assert sorted(same) == pytest.approx(sorted(one), abs=12)


def test_jobs_that_run_longer_than_those_that_ended_make_longer_ones_likely() -> None:
    predictor = Survivors()
    for seconds in [10] * 19 + [5000]:
        predictor.learn(1, UNKNOWN, 1, seconds)
    waiting, running = (1, UNKNOWN, 1, 0), (1, UNKNOWN, 1, 1000)
    (before,) = drawn(predictor, [waiting], times=2000)
    found = drawn(predictor, [waiting, running, running, running], times=2000)[0]
    assert share_of(before, {5000}) < 0.15
    assert 0.2 < share_of(found, {5000}) < 0.35
    assert {10, 5000} == set(found)
    mean, *_ = means(predictor, waiting, running, running, running)
    assert mean == pytest.approx(sum(found) / 2000, rel=0.1)
    assert mean > 2 * means(predictor, waiting)[0]


def test_where_none_has_lasted_longer_twice_the_longest_is_likely() -> None:
    predictor = Survivors()
    for _ in range(3):
        predictor.learn(1, UNKNOWN, 1, 10)
    found = drawn(predictor, [(1, UNKNOWN, 1, 0), (1, UNKNOWN, 1, 40), (1, UNKNOWN, 1, 50)])[0]
    assert set(found) == {10, 100}


def test_of_whom_nothing_is_known_half_last_as_long_again() -> None:
    (found,) = drawn(Survivors(), [(UNKNOWN, UNKNOWN, 1, 10_000)], times=2000)
    assert sorted(found)[1000] == pytest.approx(20_000, rel=0.1)


def test_of_ten_jobs_of_a_kind_nine_are_no_longer() -> None:
    lengths = Survivors()
    for seconds in range(9):
        lengths.learn(1, 600, 4, seconds + 1)
    assert lengths.nine_of_ten(1, 600, 4) == (0, 0)
    lengths.learn(1, 600, 2, 500)
    assert lengths.nine_of_ten(1, 600, 4) == (10, 9)  # those with the limit
    assert lengths.nine_of_ten(1, 900, 4) == (10, 9)  # all of the user's
    assert lengths.nine_of_ten(2, 600, 4) == lengths.nine_of_ten(UNKNOWN, 600, 4) == (0, 0)
    for _ in range(10):
        lengths.learn(1, 600, 4, 100)
    assert lengths.nine_of_ten(1, 600, 4) == (19, 100)
