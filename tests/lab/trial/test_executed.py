"""From Slurm's records to a schedule of the same workload."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from shapleyprio.fairness.runs import JobRecord, RunKey
from shapleyprio.lab.trial.executed import ExecutedWorkload, Held, Submitted, executed_workload
from shapleyprio.lab.trial.plan import OwnNodes
from shapleyprio.replay.measures.measures import measure
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload
from tests.replay.strategies import Job, workload_of_jobs

BEGIN, LENGTH = 5_000, 100
FIRST_ID = 41


def workload(*jobs: Job) -> Workload:
    return workload_of_jobs([1, 1], jobs, LENGTH)


def record(
    job: int,
    *,
    submit: int,
    start: int | None,
    end: int | None = None,
    state: str = "COMPLETED",
    node: str = "n1",
    nodes: tuple[str, ...] = (),
    processors: int = 1,
    elapsed: int | None = None,
) -> JobRecord:
    """A record of the workload's job with this index; times from the window's begin."""
    if elapsed is None:
        elapsed = 0 if start is None else (LENGTH + 9 if end is None else end) - start
    return JobRecord(
        job_id=FIRST_ID + job,
        label=str(FIRST_ID + job),
        account="o1",
        user="root",
        partition="all",
        submit=BEGIN + submit,
        eligible=BEGIN + submit,
        start=None if start is None else BEGIN + start,
        end=None if end is None else BEGIN + end,
        limit=None,
        elapsed=elapsed,
        suspended=0,
        state=state,
        nodes=() if start is None else nodes or (node,),
        processors=0 if start is None else processors,
    )


def executed(
    jobs: Workload,
    *records: JobRecord,
    submitted: Submitted | None = None,
    held: Held | None = None,
) -> ExecutedWorkload:
    return executed_workload(
        OwnNodes(jobs),
        records,
        policy="fifo",
        submitted=submitted or {FIRST_ID + job: [job] for job in range(len(jobs.job))},
        begin=BEGIN,
        held=held,
    )


def whole(*jobs: Job, owned: tuple[int, int] = (4, 2)) -> Workload:
    return workload_of_jobs(owned, jobs, LENGTH, wide="rigid", backfill="easy")


def test_starts_count_from_the_windows_begin_and_owners_are_those_of_the_nodes() -> None:
    found = executed(
        workload(Job(0, 0, 20), Job(1, 10, 20)),
        record(0, submit=1, start=12, end=32, node="n2"),
        record(1, submit=10, start=11, end=31),
    )
    assert found.schedule.policy == "fifo"
    assert found.schedule.job.tolist() == [1, 0]
    assert found.schedule.start.tolist() == [11, 12]
    assert found.schedule.owner.tolist() == [0, 1]
    assert found.faults(preempts=False) == []


def test_what_counts_is_what_was_executed() -> None:
    """Slurm's 22 s are 22 parts, though the job should have taken 20."""
    found = executed(
        workload(Job(0, 0, 20), Job(1, 0, 20)),
        record(0, submit=0, start=10, end=32),
        record(1, submit=0, start=40, end=58, node="n2"),
    )
    measures = measure(found.workload, found.schedule)
    assert measures.parts == (22, 18)
    first, second = (sum(LENGTH - t for t in range(*run)) for run in ((10, 32), (40, 58)))
    assert measures.utilities == (first, second)
    assert found.schedule.contribution == (Fraction(first), Fraction(second))


def test_a_running_job_counts_until_the_windows_end() -> None:
    found = executed(
        workload(Job(0, 0, 15), Job(1, 0, 20)),
        record(0, submit=0, start=90, state="RUNNING"),
        record(1, submit=0, start=90, end=LENGTH + 30, node="n2"),
    )
    assert measure(found.workload, found.schedule).parts == (10, 10)


def test_the_end_of_a_running_job_is_not_believed() -> None:
    running = record(0, submit=0, start=10, end=12, state="RUNNING")
    found = executed(workload(Job(0, 0, 50)), running)
    assert measure(found.workload, found.schedule).parts == (50, 0)


@pytest.mark.parametrize(
    "late",
    [
        record(0, submit=0, start=None, state="PENDING"),
        record(0, submit=0, start=LENGTH, end=LENGTH + 5),
    ],
)
def test_a_job_that_did_not_start_in_the_window_waited_until_its_end(late: JobRecord) -> None:
    found = executed(workload(Job(0, 30, 5)), late)
    assert found.schedule.job.tolist() == []
    assert found.started.tolist() == [UNKNOWN]
    assert found.count_started == 0
    assert measure(found.workload, found.schedule).mean_wait == LENGTH - 30
    assert found.faults(preempts=False) == []


def test_the_lag_is_from_release_to_submission() -> None:
    found = executed(
        workload(Job(0, 3, 5), Job(0, 4, 5), Job(0, 5, 5)),
        record(0, submit=5, start=5, end=10),
        record(1, submit=4, start=None, state="PENDING"),
    )
    assert found.lags.tolist() == [2, 0]


def test_a_missing_record_is_counted_and_the_job_counts_as_waiting() -> None:
    found = executed(workload(Job(0, 0, 5), Job(0, 0, 5)), record(1, submit=0, start=0, end=5))
    assert found.missing == 1
    assert found.faults(preempts=False) == ["1 jobs have no record"]
    assert measure(found.workload, found.schedule).mean_wait == Fraction(LENGTH, 2)


def test_of_several_executions_the_last_counts_and_they_are_reported() -> None:
    found = executed(
        workload(Job(0, 0, 5)),
        record(0, submit=20, start=30, end=35),
        record(0, submit=0, start=2, end=3, state="NODE_FAIL"),
    )
    assert found.schedule.start.tolist() == [30]
    assert found.faults(preempts=False) == ["1 jobs ran more than once"]


def test_a_job_that_went_wrong_is_reported() -> None:
    found = executed(
        workload(Job(0, 0, 5)), record(0, submit=0, start=2, end=2, state="FAILED", elapsed=0)
    )
    assert found.states == {"FAILED": 1}
    assert found.faults(preempts=False) == ["1 jobs are FAILED"]


def test_an_arrays_tasks_are_found_by_label_and_those_that_wait_share_one_record() -> None:
    found = executed(
        workload(*[Job(0, 3, 5)] * 5),
        replace(record(0, submit=4, start=None, state="PENDING"), label="41_[0,3-4]"),
        replace(record(7, submit=4, start=6, end=11), label="41_1"),
        replace(record(8, submit=4, start=8, end=13, node="n2"), label="41_2"),
        submitted={41: [0, 1, 2, 3, 4]},
    )
    assert found.submitted.tolist() == [4] * 5
    assert found.schedule.job.tolist() == [1, 2]
    assert found.schedule.start.tolist() == [6, 8]
    assert found.states == {"COMPLETED": 2, "PENDING": 3}
    assert found.faults(preempts=False) == []


def test_a_task_that_runs_has_left_the_record_of_those_that_wait() -> None:
    """Accounting may hear of a start before it hears that the rest is one task fewer."""
    running = replace(record(9, submit=0, start=2, state="RUNNING"), label="41_0")
    waiting = replace(record(0, submit=0, start=None, state="PENDING"), label="41_[0-1]")
    for records in ([running, waiting], [waiting, running]):
        found = executed(workload(*[Job(0, 0, 50)] * 2), *records, submitted={41: [0, 1]})
        assert found.states == {"PENDING": 1, "RUNNING": 1}
        assert found.faults(preempts=False) == []


@pytest.mark.parametrize("label", ["40", "41_2", "40_1", "41+1", "41_[7]"])
def test_records_of_other_jobs_are_passed_over(label: str) -> None:
    other = replace(record(0, submit=0, start=2, end=3), label=label)
    assert executed(workload(Job(0, 0, 5)), other).missing == 1


def test_who_waited_for_slurm_alone_counts_as_released_at_its_start() -> None:
    found = executed(
        workload(Job(0, 3, 20), Job(0, 4, 20), Job(1, 4, 20), Job(1, 60, 20)),
        record(0, submit=3, start=8, end=30),
        record(1, submit=4, start=12, end=32, node="n2"),
        record(2, submit=4, start=31, end=51),  # from 12 to 30 no processor was idle
        record(3, submit=60, start=63, end=83, node="n2"),
    )
    assert found.given.release.tolist() == [8, 12, 4, 63]


def test_what_slurm_was_given_came_when_it_was_submitted_and_was_as_long_as_it_ran() -> None:
    found = executed(
        workload(Job(0, 3, 20), Job(0, 4, 20), Job(1, 5, 20), Job(0, 99, 20)),
        record(0, submit=9, start=10, end=32),
        record(1, submit=9, start=None, state="PENDING"),
        record(2, submit=120, start=None, state="PENDING"),
    )
    given = found.given
    assert given.release.tolist() == [10, 10, 99, 5]
    assert given.processing_time.tolist() == [22, 20, 20, 20]
    assert given.organization.tolist() == [0, 0, 0, 1]


def test_a_job_gets_a_processor_of_the_node_that_slurm_chose() -> None:
    found = executed(
        workload(Job(0, 3, 20), Job(0, 40, 20), Job(1, 70, 20)),
        record(0, submit=3, start=4, end=24, node="n2"),
        record(1, submit=40, start=None, state="PENDING"),
        record(2, submit=70, start=71, end=91),
    )
    schedule = run_policy(found.given, "directcontr")
    assert dict(zip(schedule.job.tolist(), schedule.owner.tolist(), strict=True)) == {
        0: 1,
        1: 0,  # which Slurm did not start
        2: 0,
    }


BOTH = ("n1", "n2", "n3")


def parts(found: ExecutedWorkload) -> list[tuple[int, int, int, int]]:
    schedule = found.schedule
    columns = (schedule.job, schedule.start, schedule.owner, schedule.copies)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_whole_job_is_one_job_on_the_processors_of_several_owners() -> None:
    """As slurmctld says; else in proportion to the nodes' sizes."""
    jobs = whole(Job(0, 0, 20, 3), Job(1, 0, 30, 3))
    found = executed(
        jobs,
        record(0, submit=0, start=2, end=22, nodes=BOTH, processors=3),
        record(1, submit=0, start=2, end=32, nodes=BOTH, processors=3),
        held={RunKey(FIRST_ID, BEGIN, BEGIN + 2): {"n1": 2, "n2": 1}},
    )
    assert parts(found) == [(0, 2, 0, 2), (0, 2, 1, 1), (1, 2, 0, 2), (1, 2, 1, 1)]
    exact = executed(
        jobs,
        record(0, submit=0, start=2, end=22, nodes=BOTH, processors=3),
        record(1, submit=0, start=2, end=32, nodes=BOTH, processors=3),
        held={
            RunKey(FIRST_ID, BEGIN, BEGIN + 2): {"n1": 2, "n3": 1},
            RunKey(FIRST_ID + 1, BEGIN, BEGIN + 2): {"n1": 1, "n2": 2},
        },
    )
    assert parts(exact) == [(0, 2, 0, 3), (1, 2, 0, 1), (1, 2, 1, 2)]
    assert exact.count_started == 2
    placed = exact.given.placed
    assert placed is not None
    assert placed.first.tolist() == [0, 1, 3]
    assert placed.processors.tolist() == [3, 1, 2]
    measures = measure(exact.workload, exact.schedule)
    assert measures.parts == (3 * 20, 3 * 30)
    first, second = (sum(LENGTH - t for t in range(*run)) for run in ((2, 22), (2, 32)))
    assert exact.schedule.contribution == (Fraction(3 * first + second), Fraction(2 * second))


def test_who_waits_beside_a_job_that_does_not_fit_waits_for_processors() -> None:
    """Idle processors may be kept for the wide one, so that is no slowness of Slurm's."""
    found = executed(
        whole(Job(0, 0, 50, 4), Job(0, 10, 10, 6), Job(1, 10, 10, 1), Job(1, 80, 5, 6)),
        record(0, submit=0, start=5, end=55, processors=4),  # everything was idle
        record(1, submit=10, start=55, end=65, nodes=BOTH, processors=6),
        record(2, submit=10, start=30, end=40, node="n2"),
        record(3, submit=80, start=86, end=91, nodes=BOTH, processors=6),
    )
    assert found.given.release.tolist() == [5, 10, 10, 86]
