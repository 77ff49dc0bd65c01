"""Forecasts in a replay know nothing of what comes later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.common.wording import DAY
from shapleyprio.lab.experiment.observing import Observer, schedule_with_orders
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.forecasts.futures import play
from shapleyprio.replay.policies import Estimation
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.log import Labels, Log
from shapleyprio.replay.workloads.workload import Window, with_history, workload_of
from tests.replay.forecasts.examples import consortium_of, log_of
from tests.replay.strategies import Job

OWNED = [2, 1]
LIMIT = 5000
BEGIN = 3 * DAY
WINDOW = Window(start=BEGIN, length=4000)

JOBS = st.builds(
    Job,
    st.integers(0, 1),
    st.integers(0, BEGIN // 400 - 1).map(lambda step: 400 * step)
    | st.integers(BEGIN, BEGIN + 3999),
    st.integers(1, 3000),
    st.integers(1, 3),
    st.just(LIMIT),
)


def forecast_at(log: Log, jobs: list[Job], policy: str, t: int) -> tuple[list[int], Ints]:
    dealt = consortium_of(jobs, OWNED)
    workload = workload_of(log, dealt, window=WINDOW, wide="rigid", backfill="easy")
    workload = with_history(workload, log)
    schedule, orders = schedule_with_orders(workload, policy, seed=1, estimation=Estimation())
    known = Observer(log, dealt, workload, schedule).at(t)
    random = np.random.default_rng(5)
    played = play(known.present, orders(t), known.predictor, known.past, random, futures=4)
    return known.present.jobs.job.tolist(), played


@given(
    st.lists(st.tuples(JOBS, st.integers(0, 2)), min_size=1, max_size=25),
    st.sampled_from(["fairshare", "directcontr", "live"]),
    st.data(),
)
def test_what_comes_later_changes_no_forecast(
    drawn: list[tuple[Job, int]], policy: str, data: st.DataObject
) -> None:
    first = Job(0, BEGIN, 100, 1, LIMIT)
    jobs, users = [first, *(job for job, _ in drawn)], [0, *(user for _, user in drawn)]
    log = log_of(jobs, users)
    t = data.draw(st.sampled_from(sorted({0, *(j.release - BEGIN for j in jobs)} & {*range(4000)})))
    there, before = forecast_at(log, jobs, policy, t)
    later = log.release > BEGIN + t
    # the rest of what has not ended may come otherwise, and so may all that is released later
    lengths = np.where(later | np.isin(log.job, there), LIMIT, log.processing_time)
    changed = replace(
        log,
        processing_time=lengths,
        release=np.where(later, BEGIN + 3999, log.release),
        processors=np.where(later, 1, log.processors),
    )
    there_after, after = forecast_at(changed, jobs, policy, t)
    assert there_after == there
    assert after.tolist() == before.tolist()


def test_what_was_released_keeps_to_its_partition() -> None:
    jobs = [Job(0, release, 100) for release in (BEGIN - 20, BEGIN - 10, BEGIN, BEGIN)]
    codes = np.array([1, 0, 2, 1], dtype=np.int32)
    log = replace(
        log_of(jobs, [0] * 4), labels={"partition": Labels(codes, ("batch", "debug", "gone"))}
    )
    dealt = consortium_of(jobs, OWNED)
    workload = workload_of(log, dealt, window=WINDOW, wide="rigid", backfill="easy")
    bays = Bays(
        partitions=("", "batch", "debug"),
        reach=np.array([[True, True], [True, False], [False, True]]),
        owned=np.array([[2, 0], [0, 1]], dtype=np.int64),
        partition=np.array([0, 2], dtype=np.int32),
    )
    workload = replace(workload, bays=bays)
    schedule, _ = schedule_with_orders(workload, "fairshare", seed=1, estimation=Estimation())
    known = Observer(log, dealt, workload, schedule).at(0)
    assert known.past.jobs.partition.tolist() == [2, 1, 0, 2]
    assert known.present.bay is not None
    assert known.present.bay.tolist() == [0, 1]
