"""How long jobs are expected to last."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.replay.coalitions.knowledge import (
    LastTwo,
    Limit,
    Predictor,
    predictor_named,
)
from shapleyprio.replay.coalitions.survivors import DEFAULT_SECONDS
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.policies import PREDICTORS
from shapleyprio.replay.workloads.log import UNKNOWN
from tests.replay.strategies import WIDTHS

USERS = st.integers(-1, 2)
EITHER = st.just(UNKNOWN) | st.integers(1, 10_000)


def expected(predictor: Predictor, user: int, *, limit: int = UNKNOWN, elapsed: int = 0) -> int:
    columns = (np.array([value]) for value in (user, limit, 1, elapsed))
    return int(predictor.predict(*columns)[0])


@pytest.mark.parametrize("name", PREDICTORS)
@given(
    st.lists(st.tuples(USERS, EITHER, WIDTHS, st.integers(0, 10_000)), max_size=8),
    st.lists(st.tuples(USERS, EITHER, WIDTHS, st.integers(0, 20_000)), max_size=6),
)
def test_every_job_is_expected_to_go_on_and_within_its_limit_if_it_is(
    name: str,
    past: list[tuple[int, int, int, int]],
    jobs: list[tuple[int, int, int, int]],
) -> None:
    predictor = predictor_named(name)
    for job in past:
        predictor.learn(*job)
    users, limit, processors, elapsed = np.array(jobs, dtype=np.int64).reshape(-1, 4).T
    found = predictor.predict(users, limit, processors, elapsed)
    assert (found > elapsed).all()
    within = (limit != UNKNOWN) & (elapsed < limit)
    assert (found[within] <= limit[within]).all()


def test_the_last_two_jobs_of_the_same_user_count() -> None:
    predictor = LastTwo()
    assert expected(predictor, 3) == DEFAULT_SECONDS
    predictor.learn(3, 30, 2, 100)
    assert expected(predictor, 3) == 100
    for user, seconds in ((3, 20), (4, 9), (3, 50), (UNKNOWN, 7)):
        predictor.learn(user, UNKNOWN, 1, seconds)
    assert expected(predictor, 3) == (20 + 50) // 2
    assert expected(predictor, 3, elapsed=36) == 2 * 36 + 1
    assert expected(predictor, 3, limit=30) == 30
    assert expected(predictor, UNKNOWN) == DEFAULT_SECONDS


def test_the_limit_counts_and_where_there_is_none_an_hour_or_twice_the_elapsed_time() -> None:
    assert expected(Limit(), 3, limit=600) == 600
    assert expected(Limit(), 3) == DEFAULT_SECONDS
    assert expected(Limit(), 3, elapsed=2 * DEFAULT_SECONDS) == 4 * DEFAULT_SECONDS
    assert expected(Limit(), 3, limit=600, elapsed=600) == 1201


def test_an_unknown_predictor_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(PolicyError, match="survivors, last-two, limit"):
        predictor_named("oracle")
