from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice

from shapleyprio.lab.demo.consortium import MEMBERS, PROCESSORS, rounds, workload
from shapleyprio.lab.demo.simulated import first_come_first_served
from shapleyprio.lab.demo.stage import DemoJob, mean_wait

HOUR = 3600
FLOODING, STEADY, LENDING = (member.name for member in MEMBERS)


def test_the_same_seed_gives_the_same_jobs() -> None:
    assert workload(7, HOUR) == workload(7, HOUR)
    assert workload(7, HOUR) != workload(8, HOUR)


def test_jobs_come_in_the_order_of_their_submission_and_before_the_end() -> None:
    jobs = workload(2, HOUR)
    assert jobs == sorted(jobs, key=lambda job: job.second)
    assert all(0 <= job.second < HOUR for job in jobs)


def test_all_together_ask_for_more_than_there_is() -> None:
    work = sum(job.processors * job.seconds for job in workload(2, 2 * HOUR))
    assert 1.1 < work / (PROCESSORS * 2 * HOUR) < 1.6


def test_one_floods_from_the_start_and_one_asks_late_and_little() -> None:
    jobs = workload(2, 2 * HOUR)
    first = Counter(job.account for job in jobs if job.second < 60)
    count = Counter(job.account for job in jobs)
    assert first[FLOODING] > 50 > 5 * first[STEADY]
    assert first[LENDING] == 0
    assert min(job.second for job in jobs if job.account == LENDING) >= HOUR / 2
    assert count[LENDING] < count[FLOODING] / 3


def test_a_short_demo_has_jobs_of_everyone() -> None:
    assert {job.account for job in workload(2, HOUR // 10)} == {m.name for m in MEMBERS}


def test_without_us_who_comes_late_waits_behind_the_flood() -> None:
    jobs = first_come_first_served(workload(2, HOUR), HOUR)
    late = [job for job in jobs if job.account == LENDING]
    assert mean_wait(late, HOUR) > 600


def test_a_waiting_job_counts_with_its_wait_so_far() -> None:
    started = DemoJob(account="a", submit=0, start=100)
    waiting = DemoJob(account="a", submit=100, start=None)
    assert mean_wait([started, waiting], until=400) == 200
    assert mean_wait([], until=400) == 0


def test_rounds_go_on_with_a_pause_between_them() -> None:
    first = workload(seed=1, duration=3600)
    second = [replace(job, second=job.second + 4800) for job in workload(seed=2, duration=3600)]
    endless = rounds(seed=1, duration=3600)
    assert list(islice(endless, len(first) + len(second))) == [*first, *second]
    assert next(endless).second == 2 * 4800
