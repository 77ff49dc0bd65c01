"""Arrivals are as the last weeks' were, and nothing of them is still to come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.common.wording import DAY
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.forecasts.futures import LONGEST, WEEK, Columns, ReleasedJobs, shifts
from shapleyprio.replay.workloads.log import UNKNOWN


def past(release: list[int], *, first: int, processing_time: int = 7) -> ReleasedJobs:
    """Jobs of one organization and processor, the n-th at position n."""
    count, ones = len(release), np.ones(len(release), dtype=np.int64)
    jobs = Columns(
        release=np.array(release, dtype=np.int64),
        organization=0 * ones,
        processors=ones,
        limit=100 * ones,
        user=0 * ones,
        processing_time=processing_time * ones,
        position=np.arange(count),
        partition=0 * ones,
    )
    return ReleasedJobs(jobs, first)


def drawn(of: ReleasedJobs, days: int, seed: int) -> Columns:
    return of.arrivals(0, days, Survivors(), np.random.default_rng(seed))


@given(st.integers(0, LONGEST - 1))
def test_no_stretch_reaches_beyond_now(day: int) -> None:
    assert all(shift >= (day + 1) * DAY for shift, _ in shifts(day))
    assert [shift for shift, weeks in shifts(day) if weeks]


RELEASES = st.lists(st.integers(-5 * WEEK, 0), max_size=40).map(sorted)


@given(RELEASES, st.integers(1, 6), st.integers(0, 99))
def test_arrivals_are_released_after_now_at_the_hours_of_the_past(
    release: list[int], days: int, seed: int
) -> None:
    found = drawn(past(release, first=-5 * WEEK), days, seed)
    assert (found.release > 0).all()
    assert (found.release <= days * DAY).all()
    back = found.release - np.array(release, dtype=np.int64)[found.position]
    assert set(back.tolist()) <= {WEEK, 2 * WEEK, 3 * WEEK, 4 * WEEK}


@given(RELEASES, st.integers(0, 99))
def test_more_days_begin_with_the_arrivals_of_fewer(release: list[int], seed: int) -> None:
    of = past(release, first=-5 * WEEK, processing_time=UNKNOWN)
    few, more = drawn(of, 2, seed), drawn(of, 4, seed)
    begin = more.at(np.flatnonzero(more.release <= 2 * DAY))
    assert all((one == other).all() for one, other in zip(few, begin, strict=True))


def test_where_no_week_is_known_the_day_before_is_taken() -> None:
    found = drawn(past([-DAY + 10, -5], first=-DAY), 1, 0)
    assert found.release.tolist() == [10, DAY - 5]
    assert found.processing_time.tolist() == [7, 7]


@pytest.mark.parametrize("days", [1, 3])
def test_where_nothing_is_known_nothing_comes(days: int) -> None:
    assert len(drawn(past([-10], first=-10), days, 0).release) == 0


def test_jobs_that_have_not_ended_get_lengths_within_their_limits() -> None:
    found = drawn(past([-DAY + 10], first=-DAY, processing_time=UNKNOWN), 1, 0)
    assert 0 < found.processing_time[0] <= 100
