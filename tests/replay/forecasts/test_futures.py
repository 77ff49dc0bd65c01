"""Futures go on from the present exactly as the schedule does, if they know what comes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from shapleyprio.lab.experiment.observing import (
    check_forecast,
    present_of,
    schedule_with_orders,
)
from shapleyprio.lab.experiment.scoring import by_limits
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.engine.codes import FAIR_SHARE, FIRST_COME
from shapleyprio.replay.engine.engine import run
from shapleyprio.replay.engine.keys import Ints, no_keys
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.forecasts.forecast import forecasts
from shapleyprio.replay.forecasts.futures import (
    ByCode,
    ByEstimate,
    Order,
    play,
    starts_in,
)
from shapleyprio.replay.forecasts.present import Limited, Present, releasable
from shapleyprio.replay.policies import ONE_SCHEDULE, Estimation
from shapleyprio.replay.policies.one_schedule import one_world
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Window, Workload
from tests.examples import examples
from tests.replay.forecasts.examples import (
    NO_PAST,
    in_partitions,
    released_after,
    rigid,
    starts_of,
    there_at,
    whole_jobs,
)
from tests.replay.strategies import Job, workload_of_jobs

WORKLOADS = whole_jobs() | in_partitions()
FORECAST = [policy for policy in ONE_SCHEDULE if policy != "karma"]
HELD = Estimation(recompute=100)
"""An estimate holds from the first contended moment to the end."""


def scheduled(workload: Workload, policy: str) -> Any:
    return schedule_with_orders(workload, policy, seed=0, estimation=HELD)


def test_two_overdue_jobs_let_another_start_first_come_first_served_at_the_next_release() -> None:
    """The reservation behind them is for when both end, which leaves a processor over."""
    jobs = [
        Job(0, 0, 30, 1, 4),
        Job(0, 0, 30, 1, 9),
        Job(0, 0, 90, 1, 99),
        Job(1, 1, 5, 2, 5),  # has the reservation
        Job(2, 2, 30, 1, 30),
        Job(2, 9, 1, 1, 30),
    ]
    workload = workload_of_jobs([2, 1, 1], jobs, 20, wide="rigid", backfill="easy")
    world = one_world(workload, no_keys(), 0, wide=False)
    for _ in run(FIRST_COME, world, 20):
        pass
    size = int(world.record.size[0])
    started = dict(zip(world.record.job[:size], world.record.start[:size], strict=True))
    assert started == {0: 0, 1: 0, 2: 0, 4: 9}


@pytest.mark.parametrize(
    ("policy", "long_ago"),
    [
        *((policy, 0) for policy in (*FORECAST, "live")),
        *((policy, 2**32) for policy in FORECAST),  # moments that need two limbs
    ],
)
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.filter_too_much])
@given(WORKLOADS, st.data())
def test_with_the_true_lengths_and_arrivals_the_schedule_goes_on_as_it_did(
    policy: str, long_ago: int, workload: Workload, data: st.DataObject
) -> None:
    workload = later_by(workload, long_ago)
    schedule, orders = scheduled(workload, policy)
    starts = starts_of(workload, schedule)
    t = data.draw(st.integers(long_ago, workload.window.length - 1))
    order = orders(t)
    if isinstance(order, ByEstimate):
        assume(order.estimate.coalitions)  # nobody has competed before
    present, there = present_of(workload, schedule, t), there_at(workload, starts, t)
    played = starts_in(
        present,
        workload.processing_time[there],
        released_after(workload, t),
        order,
        days=1,
    )
    begun = starts[there] != NEVER
    assert played[begun].tolist() == starts[there][begun].tolist()
    assert (played[~begun] >= workload.window.length).all()


def later_by(workload: Workload, seconds: int) -> Workload:
    window = replace(workload.window, length=workload.window.length + seconds)
    return replace(workload, window=window, release=workload.release + seconds)


def at_a_moment(workload: Workload, policy: str, data: st.DataObject) -> tuple[Present, Order]:
    """Draws a moment of a policy's schedule."""
    schedule, orders = scheduled(workload, policy)
    t = data.draw(st.integers(0, workload.window.length - 1))
    return present_of(workload, schedule, t), orders(t)


@given(WORKLOADS, st.sampled_from(["fairshare", "live"]), st.integers(0, 9), st.data())
def test_no_job_is_forecast_before_now_and_none_without_a_future(
    workload: Workload, policy: str, seed: int, data: st.DataObject
) -> None:
    present, order = at_a_moment(workload, policy, data)
    random = np.random.default_rng(seed)
    starts = play(present, order, Survivors(), NO_PAST, random, futures=5)
    assert (starts[:, present.waits] > present.t).all()
    assert (starts[:, ~present.waits] == present.start[~present.waits]).all()
    found = forecasts(present, starts)
    assert list(found) == np.flatnonzero(present.waits).tolist()
    for forecast in found.values():
        assert present.t < forecast.early <= forecast.median <= forecast.late
        assert 0 <= forecast.within_hour <= 1


@given(WORKLOADS, st.sampled_from(["fairshare", "live"]), st.data())
def test_what_is_wanted_alone_starts_as_it_does_among_all(
    workload: Workload, policy: str, data: st.DataObject
) -> None:
    present, order = at_a_moment(workload, policy, data)
    waiting = np.flatnonzero(present.waits)
    assume(len(waiting))
    wanted = np.array(data.draw(st.lists(st.sampled_from(waiting.tolist()), min_size=1)))
    all_starts, starts = (
        play(
            present,
            order,
            Survivors(),
            NO_PAST,
            np.random.default_rng(0),
            futures=3,
            wanted=some,
        )
        for some in (None, wanted)
    )
    assert starts[:, wanted].tolist() == all_starts[:, wanted].tolist()


@given(in_partitions(), st.sampled_from(["fairshare", "live"]), st.data())
def test_a_dependent_job_starts_after_the_ends_of_those_before_it(
    workload: Workload, policy: str, data: st.DataObject
) -> None:
    present, order = at_a_moment(workload, policy, data)
    waiting = np.flatnonzero(present.waits).tolist()
    assume(len(waiting) > 1)
    dependent = data.draw(st.sets(st.sampled_from(waiting[1:])))
    after = {
        job: tuple(data.draw(st.lists(st.sampled_from(waiting), min_size=1, max_size=2)))
        for job in dependent
    }
    lengths = Survivors()
    for _ in range(20):
        lengths.learn(UNKNOWN, UNKNOWN, 1, 7)
    jobs = replace(present.jobs, limit=np.full_like(present.jobs.limit, UNKNOWN))
    present = replace(present, jobs=jobs, after=after)
    starts = play(present, order, lengths, NO_PAST, np.random.default_rng(0), futures=3)
    for job, others in after.items():
        if job in releasable(after):
            ends = starts[:, list(others)].max(axis=1)
            assert ((starts[:, job] >= ends + 7) | (ends == NEVER)).all()
        else:
            assert (starts[:, job] == NEVER).all()


@given(in_partitions(), st.sampled_from(["fairshare", "live"]), st.data())
def test_dependent_jobs_start_as_if_it_were_known_when_those_before_them_end(
    workload: Workload, policy: str, data: st.DataObject
) -> None:
    present, order = at_a_moment(workload, policy, data)
    whose = present.jobs.organization[present.waits].tolist()
    last = dict(zip(whose, np.flatnonzero(present.waits).tolist(), strict=True)).values()
    assume(any(last))
    everybody = st.integers(0, len(present.start) - 1)
    after = {
        job: tuple(data.draw(st.sets(everybody.filter(job.__gt__), min_size=1, max_size=3)))
        for job in data.draw(st.sets(st.sampled_from([job for job in last if job]), min_size=1))
    }
    lengths = present.jobs.processing_time

    def played(present: Present) -> Ints:
        return starts_in(present, lengths, NO_PAST.jobs, order, days=1)

    starts = played(replace(present, after=after))
    release = present.jobs.release.copy()
    for job, others in after.items():
        release[job] = (starts + lengths)[list(others)].max()
    assume(len(set(release[list(after)].tolist())) == len(after))  # else chance has the order
    known = replace(present, jobs=replace(present.jobs, release=release))
    assert played(known).tolist() == starts.tolist()


def in_one_partition(workload: Workload) -> Workload:
    bays = Bays(
        partitions=("a",),
        reach=np.array([[True]]),
        owned=workload.owned[None],
        partition=np.zeros(len(workload.job), dtype=np.int32),
    )
    return replace(workload, bays=bays)


def test_a_released_job_stands_where_it_stood_among_those_of_its_organization() -> None:
    jobs = [Job(0, 0, 10), *(Job(0, 1, 2) for _ in range(4))]
    workload = in_one_partition(rigid([1], jobs))
    schedule, _ = scheduled(workload, "fairshare")
    present = replace(present_of(workload, schedule, 5), after={2: (1,), 4: (3,)})
    lengths = present.jobs.processing_time
    starts = starts_in(present, lengths, NO_PAST.jobs, ByCode(FAIR_SHARE), days=1)
    assert starts.tolist() == [0, 10, 12, 14, 16]
    present = replace(present, after={1: (0,), 2: (3,)})
    starts = starts_in(present, lengths, NO_PAST.jobs, ByCode(FAIR_SHARE), days=1)
    assert starts.tolist() == [0, 10, 14, 12, 16]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 3)), min_size=2, max_size=12),
    st.data(),
)
def test_jobs_that_a_limit_keeps_back_never_have_more_than_it_allows(
    sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    running = data.draw(st.integers(1, len(sizes) - 1))
    jobs = [Job(0, int(n >= running), *size) for n, size in enumerate(sizes)]
    workload = in_one_partition(rigid([100], jobs))
    schedule, _ = scheduled(workload, "fairshare")
    released = replace(workload, release=0 * workload.release)
    by_processors = data.draw(st.booleans())
    kept = Limited(tuple(range(running)), tuple(range(running, len(sizes))), by_processors)
    present = replace(present_of(released, schedule, 0), limited=(kept,))
    lengths = present.jobs.processing_time
    starts = starts_in(present, lengths, NO_PAST.jobs, ByCode(FAIR_SHARE), days=1)
    amounts = present.jobs.processors if by_processors else np.ones(len(sizes), dtype=int)
    limit = max(amounts[:running].sum(), amounts.max())
    for t in starts:
        assert amounts[(starts <= t) & (t < starts + lengths)].sum() <= limit
    first = int(np.argmin(lengths[:running]))
    if amounts[running] <= amounts[first]:
        assert starts[running] == lengths[first]


@given(in_partitions(), st.sampled_from(["fairshare", "live"]), st.data())
def test_nothing_runs_while_a_partition_is_closed_that_its_limit_lets_run_then(
    workload: Workload, policy: str, data: st.DataObject
) -> None:
    present, order = at_a_moment(workload, policy, data)
    bays, jobs = present.jobs.bays, present.jobs
    assert bays is not None
    soon = st.integers(1, 50).map(present.t.__add__) | st.just(NEVER)
    closes = np.array([data.draw(soon) for _ in bays.partitions])
    lengths = np.minimum(jobs.processing_time, jobs.estimate)  # Slurm ends them at their limits
    starts = starts_in(replace(present, closes=closes), lengths, NO_PAST.jobs, order, days=1)
    ends = starts + np.maximum(np.where(jobs.limit == UNKNOWN, 0, jobs.limit), lengths)
    of_jobs = closes[bays.partition]
    assert ((starts >= of_jobs) | (ends <= of_jobs) | ~present.waits).all()
    assert (starts < NEVER).all()


def test_by_limits_jobs_last_as_long_as_they_asked_for_and_no_others_come() -> None:
    jobs = [Job(0, 0, 10, limit=100), Job(0, 5, 10, limit=50), Job(0, 5, 10), Job(0, 6, 1)]
    workload = rigid([1], jobs)
    schedule, _ = scheduled(workload, "fairshare")
    present = present_of(workload, schedule, 5)
    assert by_limits(present, ByCode(FAIR_SHARE)).tolist() == [0, 100, 150]


def test_a_first_job_waits_for_processors_and_those_behind_it_for_their_turn() -> None:
    jobs = [Job(0, 0, 60, 2), Job(1, 1, 60, 3), Job(1, 2, 60, 1), Job(0, 2, 60, 1)]
    workload = rigid([2, 1], jobs)
    schedule, orders = scheduled(workload, "fairshare")
    present = present_of(workload, schedule, 2)
    assert present.free == 1
    starts = play(present, orders(2), Survivors(), NO_PAST, np.random.default_rng(0))
    waits_for = {
        int(present.jobs.job[job]): forecast.waits_for
        for job, forecast in forecasts(present, starts).items()
    }
    assert waits_for == {101: "processors", 102: "turn", 103: "turn"}


def test_what_cannot_be_played_is_refused() -> None:
    workload = rigid([1], [Job(0, 0, 1)])
    schedule, _ = scheduled(workload, "fairshare")
    with pytest.raises(PolicyError, match="whole jobs"):
        present_of(replace(workload, wide="expand"), schedule, 0)
    for policy in ("ref", "karma", "fairshare:7d", "kai:7d", "rule:directcontr"):
        with pytest.raises(PolicyError, match=f"no forecasts under {policy}"):
            check_forecast(policy)


def test_a_window_of_a_day_ends_when_all_that_waited_has_started() -> None:
    workload = replace(rigid([1], [Job(0, 0, 9), Job(0, 0, 9)]), window=Window(start=0, length=5))
    schedule, orders = scheduled(workload, "fairshare")
    present = present_of(workload, schedule, 1)
    found = starts_in(present, np.array([9, 9]), NO_PAST.jobs, orders(1), days=1)
    assert found.tolist() == [0, 9]


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.builds(
            Job,
            organization=st.just(0),
            release=st.integers(1, 30),
            processing_time=st.integers(1, 30),
            processors=st.integers(1, 5),
            limit=st.integers(1, 40),
        ),
        max_size=25,
    )
)
def test_jobs_pass_those_of_their_own_organization_as_if_each_had_one_of_its_own(
    later: list[Job],
) -> None:
    """First come, first served, where nothing else depends on whose jobs they are."""
    first = [Job(0, 0, 7, 2, 9), Job(0, 0, 12, 1, 40), Job(0, 0, 3, 1, 3)]
    later = sorted(later, key=lambda job: job.release)
    of_many = [replace(job, organization=u) for u, job in enumerate(later, 1)]

    def starts(jobs: list[Job], *, passes_own: bool) -> dict[int, int]:
        owned = [4] + [0] * max(job.organization for job in jobs)
        workload = in_one_partition(rigid(owned, jobs))
        schedule, _ = scheduled(replace(workload, release=0 * workload.release), "fcfs")
        present = replace(
            present_of(replace(workload, release=0 * workload.release), schedule, 0),
            passes_own=passes_own,
        )
        there = workload.processors <= 4
        present = replace(present, jobs=replace(present.jobs, release=workload.release))
        found = starts_in(
            present, workload.processing_time, NO_PAST.jobs, ByCode(FIRST_COME), days=1
        )
        return dict(zip(present.jobs.job[there].tolist(), found[there].tolist(), strict=True))

    assert starts([*first, *later], passes_own=True) == starts([*first, *of_many], passes_own=False)
