"""The papers' examples and theorems hold for the schedules that policies make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import POLICIES, run_policy
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay import literal
from tests.replay.certificate import processors_started
from tests.replay.strategies import Job, jobs_of, workload_of_jobs, workloads

GREEDY = sorted(set(POLICIES) - {"recorded"})


def utilities(workload: Workload, policy: str) -> tuple[int, ...]:
    return measure(workload, run_policy(workload, policy)).utilities


# the worked example: Fig. 1 of the SPAA version, Fig. 2 of the full one


def worked_example(length: int) -> Workload:
    """In this order of the log, first come, first served is the figure's schedule."""
    sizes = [3, 4, 3, 6, 3, 6, 3, 3]
    jobs = [*(Job(0, 0, size) for size in sizes), Job(1, 0, 5), Job(0, 0, 4)]
    return workload_of_jobs([2, 1], jobs, length)


def test_the_worked_example_is_scheduled_as_in_the_figure() -> None:
    workload = worked_example(14)
    starts = run_policy(workload, "fcfs").start.tolist()
    sizes = [int(workload.processing_time[j]) for j in run_policy(workload, "fcfs").job]
    assert sorted(zip(starts, sizes, strict=True)) == sorted(
        [(0, 3), (0, 4), (0, 3), (3, 6), (3, 3), (4, 6), (6, 3), (9, 3), (10, 4), (9, 5)]
    )


@pytest.mark.parametrize(("t", "utility"), [(13, 262), (14, 297)])
def test_the_worked_example_is_worth_what_the_paper_says(t: int, utility: int) -> None:
    assert utilities(worked_example(t), "fcfs")[0] == utility


def test_without_the_other_job_the_ninth_starts_earlier_and_is_worth_4_more() -> None:
    jobs = [job for job in jobs_of(worked_example(14)) if job.organization == 0]
    assert utilities(workload_of_jobs([2, 1], jobs, 14), "fcfs")[0] == 297 + 4


def test_the_sixth_job_a_second_later_costs_6() -> None:
    schedule = run_policy(workload := worked_example(14), "fcfs")
    (sixth,) = np.flatnonzero(schedule.start == 4)
    start = schedule.start.copy()
    start[sixth] += 1
    assert measure(workload, replace(schedule, start=start)).utilities[0] == 297 - 6


def test_without_the_ninth_job_10_is_lost() -> None:
    without = jobs_of(worked_example(14))
    del without[8]
    assert utilities(workload_of_jobs([2, 1], without, 14), "fcfs")[0] == 297 - 10


# Proposition 5.4 and 5.5: unit-size jobs


@settings(max_examples=examples(40))
@given(workload=workloads(processing_times=st.just(1)))
def test_of_unit_size_jobs_all_policies_make_the_same_value(workload: Workload) -> None:
    assert len({sum(utilities(workload, policy)) for policy in GREEDY}) == 1


@pytest.mark.parametrize("policy", GREEDY)
def test_the_game_is_not_supermodular(policy: str) -> None:
    """Organizations a and b release two unit-size jobs each, c none; each has a processor."""
    a_and_b = [Job(0, 0, 1, 2), Job(1, 0, 1, 2)]
    all_three = workload_of_jobs([1, 1, 1], a_and_b, 2)
    with_c = workload_of_jobs([1, 1], a_and_b[:1], 2)
    assert sum(utilities(all_three, policy)) == 7
    assert sum(utilities(with_c, policy)) == 4


# Fig. 7 and Theorem 6.2: utilization of greedy schedules


def fig_7(order: Iterable[int]) -> Workload:
    """Four jobs of 3 s and two of 6 s on four processors until 6; who comes first in the log."""
    jobs = {0: Job(0, 0, 3, 4), 1: Job(1, 0, 6, 2)}
    return workload_of_jobs([2, 2], [jobs[u] for u in order], 6)


def test_long_jobs_first_use_all_processors_and_short_ones_first_three_quarters() -> None:
    long_first, short_first = fig_7([1, 0]), fig_7([0, 1])
    assert measure(long_first, run_policy(long_first, "fcfs")).utilization == 1
    assert measure(short_first, run_policy(short_first, "fcfs")).utilization == Fraction(3, 4)


def most_parts(workload: Workload, t: int) -> int:
    """Parts that the best schedule, greedy or not, completes by t.

    On one processor jobs are best run as they come, without a pause; so only their distribution
    over the processors is open.
    """
    tasks = literal.tasks_of(workload)
    best = 0
    for processors in product(range(workload.system_processors), repeat=len(tasks)):
        free, parts = [0] * workload.system_processors, 0
        for task, processor in zip(tasks, processors, strict=True):
            begin = max(free[processor], task.release)
            free[processor] = begin + task.processing_time
            parts += max(0, min(free[processor], t) - begin)
        best = max(best, parts)
    return best


def most_parts_of_all_schedules(workload: Workload, t: int) -> int:
    """The same, trying all starts of all jobs."""
    tasks = literal.tasks_of(workload)
    choices = [range(task.release, max(t, task.release) + 1) for task in tasks]
    best = 0
    for starts in product(*choices):
        pairs = list(zip(tasks, starts, strict=True))
        busy = [sum(s <= now < s + task.processing_time for task, s in pairs) for now in range(t)]
        if max(busy) <= workload.system_processors:
            best = max(best, sum(busy))
    return best


SEQUENTIAL = workloads(
    organizations=st.integers(1, 3),
    owned=st.integers(0, 1),
    lengths=st.integers(2, 12),
    widths=st.just(1),
    jobs=6,
)


@settings(max_examples=examples(40))
@given(
    workload=workloads(
        organizations=st.integers(1, 2),
        owned=st.just(1),
        lengths=st.integers(1, 5),
        widths=st.just(1),
        processing_times=st.integers(1, 4),
        jobs=4,
    )
)
def test_the_best_schedule_runs_jobs_as_they_come_on_each_processor(workload: Workload) -> None:
    t = workload.window.length
    assert most_parts(workload, t) == most_parts_of_all_schedules(workload, t)


def parts_by(workload: Workload, schedule: Schedule, t: int) -> int:
    return sum(
        copies * max(0, min(int(workload.processing_time[job]), t - start))
        for (job, start), copies in processors_started(schedule).items()
    )


@settings(max_examples=examples(30))
@given(workload=SEQUENTIAL)
def test_every_policy_uses_three_quarters_of_what_the_best_schedule_does(
    workload: Workload,
) -> None:
    schedules = [run_policy(workload, policy) for policy in GREEDY]
    for t in range(1, workload.window.length + 1):
        best = most_parts(workload, t)
        for schedule in schedules:
            assert 4 * parts_by(workload, schedule, t) >= 3 * best


@pytest.mark.parametrize("policy", GREEDY)
def test_fig_7_is_the_worst_case(policy: str) -> None:
    workload = fig_7([0, 1])
    best = most_parts(workload, 6)
    assert best == 24
    assert 18 <= parts_by(workload, run_policy(workload, policy), 6) <= best
