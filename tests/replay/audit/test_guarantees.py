"""What becomes of guarantees under a schedule, second by second."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapleyprio.fairness.guarantee import EligibleJob, Lent, guaranteed
from shapleyprio.replay.alone import flow_times
from shapleyprio.replay.audit.guarantees import guarantees_under
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.workload import Workload
from tests.examples import examples
from tests.replay.strategies import Job, workload_of_jobs
from tests.replay.test_bays import one_bay
from tests.replay.test_guarantee import (
    CROWDED,
    CROWDED_AND_WHOLE,
    IN_BAYS,
    apart,
    longest_job,
)
from tests.replay.test_policies import RIGID


def literally(
    workload: Workload, schedule: Schedule, u: int, seconds: int
) -> tuple[set[int], int, dict[int, int]]:
    """The jobs that asked, how many were kept, and by how much each broken one was late."""
    length, width = workload.window.length, workload.processors.copy()
    start = workload.release + flow_times(workload, schedule) - workload.processing_time
    bays = workload.bays or one_bay(workload)
    used = np.zeros((length + 1, len(bays.owned)), dtype=np.int64)
    assert schedule.bay is not None
    columns = (schedule.job, schedule.start, schedule.copies, schedule.bay)
    for job, begin, copies, bay in zip(*columns, strict=True):
        if workload.organization[job] == u:
            used[begin : begin + workload.processing_time[job], bay] += copies
    sharing = {
        one: {
            other
            for other, also in zip(bays.partitions, bays.reach, strict=True)
            if (reach & also).any()
        }
        for one, reach in zip(bays.partitions, bays.reach, strict=True)
    }
    since: dict[int, int] = {}
    asked: set[int] = set()
    kept, late = 0, {}
    for t in range(length + 1):
        if workload.wide == "expand":
            begun = schedule.start == t
            np.subtract.at(width, schedule.job[begun], schedule.copies[begun])
        waiting = [
            EligibleJob(int(workload.position[job]), "u", int(workload.release[job]), *size, within)
            for job in np.flatnonzero(workload.organization == u)
            if workload.release[job] <= t < start[job]
            for size in [(int(width[job]), 1) if workload.wide == "rigid" else (1, int(width[job]))]
            for within in [(bays.partitions[bays.partition[job]],)]
        ]
        unused = {
            ("u", one): int((bays.owned[:, u] - used[t])[reach].sum())
            for one, reach in zip(bays.partitions, bays.reach, strict=True)
        }
        first = {one.job for one in guaranteed(t, {"u": seconds}, Lent(unused, sharing), waiting)}
        asks = {
            job
            for job in np.flatnonzero(workload.organization == u).tolist()
            if int(workload.position[job]) in first and t < length
        }
        for job in since.keys() - asks:
            asked_for = t - since.pop(job)
            if asked_for > seconds:
                late[job] = asked_for - seconds
            elif start[job] == t < length:
                kept += 1
        for job in asks:
            since.setdefault(job, t)
        asked |= asks
    return asked, kept, late


@settings(max_examples=examples(60))
@given(
    workload=CROWDED | RIGID | IN_BAYS,
    seconds=st.integers(1, 9),
    policy=st.sampled_from(["fcfs", "fairshare", "fairshare@3s"]),
)
def test_they_are_counted_as_the_daemon_counts_them(
    workload: Workload, seconds: int, policy: str
) -> None:
    schedule = run_policy(workload, policy)
    found = guarantees_under(workload, [schedule], seconds)[schedule.policy]
    for u, one in enumerate(found):
        asked, kept, late = literally(workload, schedule, u, seconds)
        assert (one.asked, one.kept, one.broken) == (len(asked), kept, len(late))
        assert one.late == (pytest.approx(np.mean(list(late.values()))) if late else None)


@settings(max_examples=examples(100))
@given(
    workload=CROWDED | CROWDED_AND_WHOLE | IN_BAYS.map(apart),
    policy=st.sampled_from(["directcontr", "fairshare", "fcfs", "live"]),
)
def test_no_guarantee_is_broken_where_no_job_may_last_longer(
    workload: Workload, policy: str
) -> None:
    """Where `check` says that priorities can keep it."""
    seconds = longest_job(workload) or 1
    schedule = run_policy(workload, f"{policy}@{seconds}s")
    assert (
        sum(one.broken for one in guarantees_under(workload, [schedule], seconds)[schedule.policy])
        == 0
    )


def test_copies_that_run_do_not_ask_again() -> None:
    """So that beside those of a job that wait there is room for another job."""
    jobs = [Job(1, 0, 100, 2), Job(0, 0, 200, 3), Job(0, 1, 10)]
    workload = workload_of_jobs([4, 0], jobs, 60)
    schedule = run_policy(workload, "fcfs")
    own, _ = guarantees_under(workload, [schedule], 5)["fcfs"]
    assert (own.asked, own.broken) == (2, 2)
    assert own.late == (50 + 49) / 2


def test_what_a_job_would_have_waited_on_its_owners_nodes_alone_is_said() -> None:
    flood = [Job(0, 0, 40, 3), Job(1, 0, 20), Job(1, 5, 10, 2)]
    workload = workload_of_jobs([1, 2], flood, 100)
    schedule = run_policy(workload, "fcfs")
    other, own = guarantees_under(workload, [schedule], 10)["fcfs"]
    assert (other.asked, own.asked) == (0, 2)
    assert (own.kept, own.broken) == (0, 2)
    assert own.late == (20 + 15) / 2
    assert own.waited == (40 + 35) / 2
    assert own.alone == (0 + 10) / 2  # its second copy would have waited for the first to end
