"""Finish-time fairness, held against flow times that are counted job by job."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.replay.alone import FinishTimes, finish_times
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.bays import Bays
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay import literal
from tests.replay.strategies import Job, jobs_of, workload_of_jobs, workloads
from tests.replay.test_policies import BACKFILLS, RIGID

EXPANDED = workloads(
    organizations=st.integers(2, 3), owned=st.integers(0, 3), widths=st.integers(1, 4), jobs=12
)


def compared(workload: Workload, policy: str = "fcfs") -> FinishTimes:
    return finish_times(workload, [run_policy(workload, policy)])[0]


def literal_flow_times(workload: Workload, starts: list[tuple[int, int]]) -> list[int]:
    """Of each job from its release to the end of its last copy; (job, start) of each copy."""
    length, found = workload.window.length, []
    for job, written in enumerate(jobs_of(workload)):
        begun = [start for one, start in starts if one == job]
        last = max(begun) if len(begun) == written.processors else length
        found.append(last + written.processing_time - written.release)
    return found


def literal_rho(workload: Workload, schedule: Schedule, u: int) -> tuple[Fraction | None, int]:
    """The organization's jobs are written down once more for itself, and simulated word by word."""
    jobs, owned = jobs_of(workload), int(workload.owned[u])
    widest = owned if workload.wide == "rigid" else owned and 99
    own = [i for i, job in enumerate(jobs) if job.organization == u]
    could = [i for i in own if jobs[i].processors <= widest]
    if not could:
        return None, len(own)
    alone = workload_of_jobs(
        [owned],
        [replace(jobs[i], organization=0) for i in could],
        workload.window.length,
        wide=workload.wide,
        backfill=workload.backfill,
    )
    simulated = literal.simulated(alone, "fcfs", seed=0)
    apart = [(s.task.job, s.start) for s in simulated.starts for _ in s.owners]
    rows = zip(*(c.tolist() for c in (schedule.job, schedule.start, schedule.copies)), strict=True)
    starts = [(job, start) for job, start, copies in rows for _ in range(copies)]
    together = literal_flow_times(workload, starts)
    rho = Fraction(sum(together[i] for i in could), sum(literal_flow_times(alone, apart)))
    return rho, len(own) - len(could)


@settings(max_examples=examples(60))
@given(
    workload=EXPANDED | RIGID,
    policy=st.sampled_from(["ref", "directcontr", "fairshare", "fcfs", "karma"]),
)
def test_flow_times_are_summed_and_divided(workload: Workload, policy: str) -> None:
    schedule = run_policy(workload, policy)
    found = finish_times(workload, [schedule])[0]
    expected = [literal_rho(workload, schedule, u) for u in range(len(workload.owned))]
    assert list(zip(found.rho, found.never_alone, strict=True)) == expected


@settings(max_examples=examples(40))
@given(
    workload=workloads(
        organizations=st.just(1),
        owned=st.integers(1, 4),
        widths=st.integers(1, 4),
        jobs=12,
        backfills=BACKFILLS,
    )
    | RIGID.map(
        lambda one: workload_of_jobs(
            [3],
            [
                replace(job, organization=0, processors=min(job.processors, 3))
                for job in jobs_of(one)
            ],
            one.window.length,
            wide="rigid",
            backfill=one.backfill,
        )
    ),
    policy=st.sampled_from(["ref", "rand", "directcontr", "fairshare:5s", "roundrobin", "karma"]),
)
def test_alone_sharing_changes_nothing(workload: Workload, policy: str) -> None:
    found = compared(workload, policy)
    assert list(found.rho) == [Fraction(1) if len(workload.job) else None]
    assert found.never_alone == (0,)


def test_who_lends_what_it_does_not_need_makes_the_other_one_faster() -> None:
    """Two jobs of 10 s take 10 and 20 s on the one processor, together 10 s each on both."""
    workload = workload_of_jobs([1, 1], [Job(0, 0, 10), Job(0, 0, 10)], 40)
    assert compared(workload).rho == (Fraction(20, 30), None)
    assert compared(workload).largest == Fraction(2, 3)


def test_a_job_wider_than_its_organization_has_none_and_is_counted() -> None:
    jobs = [Job(0, 0, 10, 2), Job(0, 0, 10, 1), Job(1, 0, 5), Job(2, 0, 5)]
    found = compared(workload_of_jobs([1, 4, 0], jobs, 40, wide="rigid"))
    assert found.never_alone == (1, 0, 1)
    assert list(found.rho) == [
        Fraction(1),
        Fraction(1),
        None,
    ]  # on five processors all of them start at once


def test_what_never_starts_counts_until_the_windows_end() -> None:
    """The second one's job of 3 s waits for all 20 s, alone it would have started at once."""
    workload = workload_of_jobs([1, 1], [Job(0, 0, 50, 2), Job(1, 1, 3)], 20, wide="rigid")
    found = compared(workload)
    assert found.rho == (None, Fraction(19 + 3, 3))


def test_a_job_whose_partition_has_none_of_its_organizations_nodes_has_none() -> None:
    workload = workload_of_jobs([1, 1], [Job(0, 0, 4), Job(0, 1, 4), Job(1, 0, 4)], 20)
    bays = Bays(
        partitions=("a", "b"),
        reach=np.eye(2, dtype=np.bool_),
        owned=np.eye(2, dtype=np.int64),
        partition=np.array([0, 1, 1], dtype=np.int32),
    )
    found = compared(replace(workload, bays=bays))
    assert found.never_alone == (1, 0)
    assert found.rho[0] == 1


@pytest.mark.parametrize("wide", ["expand", "rigid"])
def test_without_processors_of_anybodys_own_there_is_none(wide: str) -> None:
    found = compared(workload_of_jobs([2, 0], [Job(1, 0, 3)], 9, wide=wide))  # type: ignore[arg-type]
    assert found.rho == (None, None)
    assert found.largest is None
