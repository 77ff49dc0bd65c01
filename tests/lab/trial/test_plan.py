"""From a workload to the jobs of a private Slurm and the cluster that runs them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shapleyprio.common.errors import Remedy
from shapleyprio.config import load_config
from shapleyprio.lab.trial.arms import ARMS
from shapleyprio.lab.trial.plan import (
    MOST_JOBS,
    OwnNodes,
    as_slurm_runs_it,
)
from shapleyprio.lab.trial.steering import past_runs
from shapleyprio.replay.errors import WorkloadError
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.workload import UserHistory
from tests.replay.strategies import Job, jobs_of, workload_of_jobs

JOBS = [Job(2, 5, 30, 2), Job(0, 0, 10, 3), Job(1, 5, 7), Job(0, 4, 9)]
WIDE = workload_of_jobs([2, 0, 3], JOBS, length=40)
WHOLE = workload_of_jobs([2, 0, 3], JOBS, length=40, wide="rigid", backfill="easy")


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


def test_whole_jobs_stay_as_they_are_on_the_least_loaded_nodes() -> None:
    jobs = as_slurm_runs_it(WHOLE)
    assert jobs_of(jobs) == jobs_of(WHOLE)
    assert jobs.job.tolist() == WHOLE.job.tolist()
    assert (jobs.wide, jobs.backfill, jobs.placement) == ("rigid", "easy", "least-loaded")


def test_a_whole_job_spans_nodes_and_asks_for_all_its_processors() -> None:
    jobs = as_slurm_runs_it(WHOLE)
    widest = int(np.argmax(jobs.processors))
    plan = OwnNodes(jobs)
    assert jobs.processors[widest] > plan.sizes["n1"]
    assert "--ntasks=3" in plan.options(widest, ARMS["fifo"])


@pytest.mark.parametrize("policy", ["ref", "fairshare", "fcfs"])
def test_policies_make_the_same_of_it(policy: str) -> None:
    as_copies, as_jobs = (
        measure(workload, run_policy(workload, policy))
        for workload in (WIDE, as_slurm_runs_it(WIDE))
    )
    assert as_jobs == as_copies


def test_more_jobs_than_a_trial_takes_are_refused() -> None:
    many = replace(WIDE, processors=np.array([MOST_JOBS, 1, 1, 1], dtype=np.int64))
    with pytest.raises(WorkloadError, match=r"20,003 jobs of one processor") as caught:
        as_slurm_runs_it(many)
    assert caught.value.remedy is Remedy.SHORTER_WINDOW
    assert len(as_slurm_runs_it(replace(many, wide="rigid")).job) == 4


def test_every_organization_brings_its_processors_as_small_nodes_of_a_partition() -> None:
    plan = OwnNodes(as_slurm_runs_it(WHOLE))
    spec = plan.spec(ARMS["fifo"], speed=60)
    assert spec.partitions == {"o1": ("n1",), "o3": ("n2", "n3")}
    assert spec.cpus == {"n1": 2, "n2": 2, "n3": 1}
    assert plan.owners == {"n1": 0, "n2": 2, "n3": 2}


def test_of_the_first_nodes_each_organization_has_its_part() -> None:
    owned = np.array([200, 0, 100], dtype=np.int64)
    plan = OwnNodes(replace(as_slurm_runs_it(WHOLE), owned=owned))
    names = sorted(plan.owners, key=lambda name: int(name[1:]))
    for many in range(3, len(names) + 1, 3):
        assert sum(plan.owners[name] == 0 for name in names[:many]) * 3 == many * 2


def test_a_large_cluster_has_larger_nodes() -> None:
    large = OwnNodes(replace(WHOLE, owned=np.array([1000, 0, 205], dtype=np.int64)))
    assert sum(large.sizes.values()) == 1205
    assert set(large.sizes.values()) == {11, 10, 7}
    assert len(large.sizes) == 110


def test_the_daemon_knows_who_stands_together(tmp_path: Path) -> None:
    nested = replace(WIDE, unions=(0, 1, 0))
    file = tmp_path / "tables.toml"
    file.write_text(OwnNodes(as_slurm_runs_it(nested)).organizations(ARMS["shapleyprio-qos"]))
    assert load_config(file).unions == nested.unions


def test_limits_are_the_users_own_in_whole_minutes() -> None:
    """One that the log does not give is the longest; one that was overstepped is longer."""
    asked = replace(
        WHOLE,
        limit=np.array([600, -1, 61, 20], dtype=np.int64),
        processing_time=np.array([30, 10, 7, 130], dtype=np.int64),
    )
    jobs = as_slurm_runs_it(asked)
    assert jobs.limit.tolist() == [600, 600, 120, 180]
    given = [OwnNodes(jobs).options(job, ARMS["fifo"])[3] for job in range(4)]
    assert given == ["--time=10", "--time=10", "--time=2", "--time=3"]


def test_slurm_kills_no_job_for_its_limit_and_backfills_up_to_the_longest() -> None:
    limits = np.array([600, -1, 400_000, 20], dtype=np.int64)
    spec = OwnNodes(as_slurm_runs_it(replace(WHOLE, limit=limits))).spec(ARMS["fifo"], speed=60)
    assert spec.longest_limit == 400_020  # in whole minutes
    assert spec.extra["OverTimeLimit"] == "UNLIMITED"


def test_backfilling_has_as_many_reservations_as_the_simulated_policies() -> None:
    plan = OwnNodes(as_slurm_runs_it(WHOLE))
    for arm, reserved_for in (("fifo", 1), ("shapleyprio-guarantee-site-factor", 0)):
        assert plan.spec(ARMS[arm], speed=60).reserved_for == reserved_for


def test_only_where_jobs_may_have_several_nodes_slurm_remembers_them_all_the_time() -> None:
    whole, cut = (
        OwnNodes(as_slurm_runs_it(workload)).spec(ARMS["fifo"], speed=60).extra
        for workload in (WHOLE, WIDE)
    )
    assert int(whole["MinJobAge"]) > WHOLE.window.length
    assert "MinJobAge" not in cut


LIVE = ARMS["shapleyprio-live-site-factor"]
KNOWN = replace(
    WIDE,
    history=UserHistory(
        user=np.array([7, -1, 8, 7], dtype=np.int64),
        past_user=np.array([8, 9, 7, 8], dtype=np.int64),
        past_limit=np.array([60, -1, 20, -1], dtype=np.int64),
        past_processors=np.array([1, 2, 3, 4], dtype=np.int64),
        past_processing_time=np.array([5, 1, 60, 30], dtype=np.int64),
    ),
)


def test_where_the_daemon_predicts_every_user_has_an_account_below_the_organizations() -> None:
    plan = OwnNodes(as_slurm_runs_it(KNOWN))
    assert plan.accounts_of_users == {7: ["o1u7", "o3u7"], 8: ["o2u8"]}
    accounts = [
        f"--account={name}" for name in ("o1u7", "o1u7", "o1u7", "o1", "o2u8", "o3u7", "o3u7")
    ]
    assert [plan.options(job, LIVE)[0] for job in range(7)] == accounts
    assert {plan.options(job, ARMS["fifo"])[0] for job in range(7)} == {
        "--account=o1", "--account=o2", "--account=o3",
    }  # fmt: skip


def test_what_users_did_before_the_window_is_known_and_counts_for_nobody() -> None:
    runs = list(past_runs(OwnNodes(as_slurm_runs_it(KNOWN)), "ann", 1000))
    assert [(run.account, run.end - run.begin) for run, _ in runs if run.end is not None] == [
        ("o2u8", 5), ("o1u7", 60), ("o3u7", 60), ("o2u8", 30),
    ]  # fmt: skip
    assert [run.end for run, _ in runs] == [996, 997, 998, 999]
    assert [run.limit for run, _ in runs] == [60, 60, 60, 60]
    assert [[*run.processors.values()] for run, _ in runs] == [[1]] * 4  # cut as the others are
    whole = OwnNodes(as_slurm_runs_it(replace(KNOWN, wide="rigid")))
    kept = [sum(run.processors.values()) for run, _ in past_runs(whole, "ann", 1000)]
    assert kept == [1, 3, 3, 4]
    assert all(allocations == () for _, allocations in runs)
