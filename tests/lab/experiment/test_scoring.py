"""Scores are what they are said to be, and widen by what was seen before."""

from __future__ import annotations

from math import log
from statistics import fmean, median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.lab.experiment.observing import schedule_with_orders
from shapleyprio.lab.experiment.scoring import LAST_JOBS, MeanWaits, score_of, widened
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.forecasts.forecast import FEWEST_ERRORS, StartForecast
from shapleyprio.replay.forecasts.futures import FURTHEST_SECONDS
from shapleyprio.replay.policies import Estimation
from shapleyprio.replay.workloads.workload import Workload
from tests.replay.forecasts.examples import rigid, starts_of, whole_jobs
from tests.replay.strategies import Job


def forecast(t: int, early: int, middle: int, late: int) -> StartForecast:
    """A forecast with waits from t on."""
    return StartForecast(
        t=t,
        early=t + early,
        median=t + middle,
        late=late if late == NEVER else t + late,
        within_hour=0.5,
        waits_for="turn",
    )


WAITS = st.integers(0, 100_000)
FORECASTS = st.tuples(
    st.integers(0, 1_000_000), st.tuples(WAITS, WAITS, WAITS).map(sorted), st.integers(1, 200_000)
).map(lambda drawn: (forecast(drawn[0], *drawn[1]), drawn[0] + drawn[2]))


@given(st.lists(FORECASTS, min_size=1, max_size=30))
def test_coverage_and_error_are_those_of_a_count(scored: list[tuple[StartForecast, int]]) -> None:
    found = score_of(scored)
    assert found.count == len(scored)
    assert found.coverage == pytest.approx(
        fmean(start in range(one.early, one.late + 1) for one, start in scored)
    )
    assert found.error == median(abs(one.median - start) for one, start in scored)


def test_nothing_is_scored_without_forecasts() -> None:
    assert (score_of([]).coverage, score_of([]).error) == (None, None)


@given(FORECASTS)
def test_an_interval_missed_a_start_if_and_only_if_its_error_is_positive(
    scored: tuple[StartForecast, int],
) -> None:
    one, start = scored
    assert (one.error(start) > 0) == (not one.early <= start <= one.late)


@given(st.lists(FORECASTS, max_size=40), st.integers(0, 40), st.integers(1, 200_000))
def test_only_jobs_that_had_started_before_widen_a_forecast(
    scored: list[tuple[StartForecast, int]], changed: int, wait: int
) -> None:
    scored = sorted(scored, key=lambda pair: pair[0].t)
    before = widened(scored)
    if changed >= len(scored):
        return
    other = [*scored]
    one, start = scored[changed]
    other[changed] = one, one.t + wait
    after = widened(other)
    first = min(start, one.t + wait)
    for (asked, _), old, new in zip(scored, before, after, strict=True):
        if asked.t < first:
            assert new == old
        assert new.early <= new.median <= new.late


def test_widened_intervals_hold_in_80_of_100_cases() -> None:
    random = np.random.default_rng(3)
    waits = np.exp(random.normal(8, 1, size=4000)).astype(int).tolist()
    scored = [(forecast(t * 10**6, 2800, 2980, 3200), t * 10**6 + w) for t, w in enumerate(waits)]
    raw = score_of(scored).coverage
    after = zip(widened(scored), (start for _, start in scored), strict=True)
    found = score_of(list(after)).coverage
    assert raw is not None
    assert raw < 0.2
    assert found == pytest.approx(0.8, abs=0.03)


def test_a_few_errors_change_nothing_and_what_is_never_late_stays_so() -> None:
    one = forecast(0, 10, 20, NEVER)
    assert one.widened([3.0] * (FEWEST_ERRORS - 1)) == one
    assert one.widened([3.0] * FEWEST_ERRORS).late == NEVER


@given(whole_jobs())
def test_the_mean_wait_is_that_of_the_last_jobs_of_its_kind_that_had_started(
    workload: Workload,
) -> None:
    schedule, _ = schedule_with_orders(workload, "fairshare", seed=0, estimation=Estimation())
    starts = starts_of(workload, schedule)
    waits = MeanWaits(workload, schedule)
    for job in np.argsort(workload.release, kind="stable").tolist():
        t = int(workload.release[job])
        begun = [other for other in np.argsort(starts, kind="stable") if starts[other] <= t]
        own = [o for o in begun if workload.organization[o] == workload.organization[job]]
        size = int(workload.processors[job]).bit_length()
        alike = [o for o in own if int(workload.processors[o]).bit_length() == size]
        last = (alike or own)[-LAST_JOBS:]
        mean = fmean(int(starts[o] - workload.release[o]) for o in last) if last else 0
        assert waits.start_of(job, t) == t + round(mean)


def test_an_overdue_job_is_expected_now() -> None:
    workload = rigid([1], [Job(0, 0, 100), Job(0, 1, 9)])
    schedule, _ = schedule_with_orders(workload, "fairshare", seed=0, estimation=Estimation())
    assert MeanWaits(workload, schedule).start_of(1, 50) == 50


def test_what_was_not_to_start_in_any_future_is_missed_by_no_more_than_futures_are_long() -> None:
    """Else a few of them would widen all intervals without end."""
    never = forecast(0, NEVER, NEVER, NEVER)
    errors = [never.error(0)] * FEWEST_ERRORS
    assert errors[0] < log(FURTHEST_SECONDS)
    assert never.widened(errors) == never
    found = forecast(1000, 50, 60, 100).widened(errors)
    assert (found.early, found.median, found.late) == (1000, 1060, NEVER)
