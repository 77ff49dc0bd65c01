"""From a workload to the jobs of a private Slurm and the cluster that runs them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shapleyprio.errors import Remedy
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.measures import measure
from shapleyprio.replay.policies import run_policy
from shapleyprio.trial.arms import ARMS
from shapleyprio.trial.plan import (
    MOST_JOBS,
    as_slurm_runs_it,
    limit_minutes,
    owners_of,
    spec_for,
)
from tests.replay.strategies import Job, jobs_of, workload_of_jobs

WIDE = workload_of_jobs(
    [2, 0, 3], [Job(2, 5, 30, 2), Job(0, 0, 10, 3), Job(1, 5, 7), Job(0, 4, 9)], length=40
)


def test_a_job_of_several_processors_becomes_several_jobs() -> None:
    jobs = as_slurm_runs_it(WIDE)
    assert jobs_of(jobs) == [
        *[Job(0, 0, 10)] * 3,
        Job(0, 4, 9),
        Job(1, 5, 7),
        *[Job(2, 5, 30)] * 2,
    ]
    assert jobs.job.tolist() == [101, 101, 101, 103, 102, 100, 100]


def test_jobs_keep_the_order_of_the_log() -> None:
    jobs = as_slurm_runs_it(WIDE)
    assert jobs.job[np.argsort(jobs.position)].tolist() == [100, 100, 101, 101, 101, 102, 103]


@pytest.mark.parametrize("policy", ["ref", "fairshare", "fcfs"])
def test_policies_make_the_same_of_it(policy: str) -> None:
    as_copies, as_jobs = (
        measure(workload, run_policy(workload, policy))
        for workload in (WIDE, as_slurm_runs_it(WIDE))
    )
    assert as_jobs == as_copies


def test_more_jobs_than_a_trial_takes_are_refused() -> None:
    many = replace(WIDE, processors=np.array([MOST_JOBS, 1, 1, 1], dtype=np.int64))
    with pytest.raises(WorkloadError, match=r"20,003 jobs") as caught:
        as_slurm_runs_it(many)
    assert caught.value.remedy is Remedy.SHORTER_WINDOW


def test_every_organization_brings_its_processors_as_one_node_and_partition() -> None:
    spec = spec_for(WIDE, ARMS["fifo"], speed=60)
    assert spec.partitions == {"o1": ("n1",), "o3": ("n3",)}
    assert spec.cpus == {"n1": 2, "n3": 3}
    assert owners_of(WIDE) == {"n1": 0, "n3": 2}


def test_the_time_limit_gives_the_scheduler_no_hint() -> None:
    assert limit_minutes(WIDE) == -(-(3600 + 30) // 60)
    long = replace(WIDE, processing_time=np.full(4, 7200, dtype=np.int64))
    assert limit_minutes(long) == 4 * 120
