"""A job without a time limit has that of its partition, as under Slurm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shapleyprio.replay.logs.swf import read_swf
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Consortium, Window, Workload, workload_of
from tests.replay.test_sacct import read

HOUR = 3600


def swf(*jobs: tuple[int, int, int]) -> Log:
    """A log of jobs with run time, requested time and partition."""
    lines = (
        f"{number} 0 0 {run} 1 -1 -1 1 {requested} -1 1 1 1 1 1 {partition} -1 -1"
        for number, (run, requested, partition) in enumerate(jobs)
    )
    return read_swf("jobs.swf", "\n".join(lines).encode())


def limits(log: Log) -> list[int]:
    found: list[int] = log.limit.tolist()
    return found


def test_the_longest_job_or_limit_of_the_partition_counts_in_whole_hours() -> None:
    log = swf(
        (10, -1, 1), (HOUR + 1, -1, 1), (5, 60, 1), (HOUR, -1, 2), (1, 3 * HOUR - 9, 3), (1, 0, 3)
    )
    assert limits(log) == [2 * HOUR, 2 * HOUR, 60, HOUR, 3 * HOUR - 9, 3 * HOUR]


def test_a_job_that_outlasted_its_limit_says_what_the_partition_allows() -> None:
    assert limits(swf((10, -1, 1), (5 * HOUR, 60, 1))) == [5 * HOUR, 60]


def test_jobs_of_no_partition_have_the_longest_of_these() -> None:
    assert limits(swf((10, -1, -1), (2 * HOUR, -1, -1), (9 * HOUR, -1, 1))) == [
        2 * HOUR,
        2 * HOUR,
        9 * HOUR,
    ]


def test_limits_of_jobs_that_have_some_stay() -> None:
    assert limits(swf((10, 20, 1), (9000, 100, 1))) == [20, 100]


def test_partitions_of_two_clusters_are_not_the_same_for_their_name() -> None:
    longer = {"Elapsed": "05:00:00", "End": "2017-01-01T15:05:00", "Timelimit": "UNLIMITED"}
    log = read(
        {"Cluster": "c1", "Timelimit": "Partition_Limit"},
        {"Cluster": "c2", **longer},
        {"Cluster": "c1", "Partition": "long", **longer},
    )
    assert limits(log) == [HOUR, 5 * HOUR, 5 * HOUR]


def test_a_log_whose_jobs_name_no_partition_is_one() -> None:
    longer = {"Elapsed": "05:00:00", "End": "2017-01-01T15:05:00"}
    assert limits(read({}, longer, without="Partition Timelimit")) == [5 * HOUR] * 2


def one_that_could_pass(log: Log) -> Workload:
    """The first job leaves a processor free for 100 s, which the third one, of 60 s, would take.

    The second one needs both processors.
    """
    log = replace(
        log,
        release=np.array([0, 1, 1]),
        processors=np.array([1, 2, 1]),
        processing_time=np.array([100, 10, 60]),
    )
    consortium = Consortium(
        organizations=("a", "b"),
        owned=np.array([1, 1]),
        organization=np.array([1, 0, 1], dtype=np.int32),
    )
    window = Window(start=0, length=1000)
    return workload_of(log, consortium, window=window, wide="rigid", backfill="easy")


@pytest.mark.parametrize("policy", ["ref", "directcontr", "fairshare", "fcfs", "shapley", "live"])
def test_no_policy_backfills_by_how_long_jobs_will_really_last(policy: str) -> None:
    unlimited = one_that_could_pass(swf((100, -1, 1), (10, -1, 1), (60, -1, 1)))
    limited = one_that_could_pass(swf((100, 100, 1), (10, 10, 1), (60, 60, 1)))
    started = {
        name: dict(zip(schedule.job.tolist(), schedule.start.tolist(), strict=True))
        for name, schedule in (
            ("unlimited", run_policy(unlimited, policy)),
            ("limited", run_policy(limited, policy)),
        )
    }
    assert started["limited"][2] < 100
    assert started["unlimited"][2] >= 100
