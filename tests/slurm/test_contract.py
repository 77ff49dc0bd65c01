"""What every adapter promises of Slurm, written once, asked of the simulated and of a real one."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from ClusterShell.RangeSet import RangeSet

from shapleyprio.fairness.runs import JobRecord, Run, run_of
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.slurm.adapters import connect
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.layout import UNSET_PRIORITY, Association, Reservation
from shapleyprio.slurm.port import Connection, PendingJob, SlurmUnavailableError, StartedJob
from shapleyprio.slurm.reasons import lack_of
from shapleyprio.slurm.releases import Release, untested
from tests.slurm.harness import (
    ACCOUNTS,
    BASE_PRIORITY,
    CALC_PERIOD_SECONDS,
    CLUSTER,
    CPUS_PER_NODE,
    NODES,
    PARTITIONS,
    QOS_WEIGHT,
    REAL_ADAPTERS,
    Harness,
    RealHarness,
    SimulatedHarness,
)

HAS_PYSLURM = find_spec("pyslurm") is not None
LONG = 36_000
NO_JOB = 4_000_000
JOB_CHANNELS = [name for name, channel in CHANNELS.items() if channel.per_job]


@pytest.fixture(scope="module")
def cluster(prepared_database: Path) -> Iterator[PrivateSlurm]:
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as folder,
        PrivateSlurm(Path(folder), RealHarness.spec, prepared=prepared_database) as cluster,
    ):
        cluster.add_accounts(ACCOUNTS)
        yield cluster


@pytest.fixture(scope="module")
def real_harnesses() -> dict[str, RealHarness]:
    """By adapter; they share the cluster."""
    return {}


def on_a_real_slurm(adapter: str) -> ParameterSet:
    marks = [pytest.mark.real_slurm]
    if adapter == "pyslurm":
        marks.append(pytest.mark.skipif(not HAS_PYSLURM, reason="pyslurm is not installed"))
    return pytest.param(adapter, marks=marks)


@pytest.fixture(params=["simulated", *map(on_a_real_slurm, REAL_ADAPTERS)])
def harness(
    request: pytest.FixtureRequest, real_harnesses: dict[str, RealHarness]
) -> Iterator[Harness]:
    harness: Harness
    adapter = request.param
    if adapter == "simulated":
        harness = SimulatedHarness()
    else:
        cluster = request.getfixturevalue("cluster")
        if adapter not in real_harnesses:
            real_harnesses[adapter] = RealHarness(cluster, adapter)
        harness = real_harnesses[adapter]
    yield harness
    harness.clear()


def records(harness: Harness, *job_ids: int) -> list[JobRecord]:
    """The records of some jobs, in the order of their starts, those that wait last."""
    found = []
    for record in harness.slurm.records_of(job_ids):
        assert isinstance(record, JobRecord)
        found.append(record)
    return sorted(found, key=lambda record: (record.start is None, record.start, record.job_id))


def window(harness: Harness, since: int, until: int) -> dict[int, JobRecord]:
    found = list(harness.slurm.records(since, until))
    return {record.job_id: record for record in found if isinstance(record, JobRecord)}


def pending(harness: Harness) -> dict[int, PendingJob]:
    queue = harness.slurm.pending()
    assert not queue.malformed
    return {job.job_id: job for job in queue.jobs}


def until_running(harness: Harness, job_id: int) -> JobRecord:
    def running() -> bool:
        return any(r.start and r.end is None for r in records(harness, job_id))

    harness.until(running, f"job {job_id} to run")
    return next(r for r in records(harness, job_id) if r.end is None)


def window_of_running(harness: Harness) -> list[Run]:
    """The runs of the last hour that have not ended."""
    now = harness.now()
    found = [r for r in harness.slurm.records(now - 3600, now) if isinstance(r, JobRecord)]
    return [run for r in found if r.end is None and (run := run_of(r, {})) is not None]


def write_for_good(harness: Harness, channel: str, values: dict[str, int]) -> set[str]:
    """Writes until Slurm puts nothing off, as it does while it makes tasks known to slurmdbd.

    Returns what is refused.
    """
    refused: dict[str, str] = {}

    def is_final() -> bool:
        refused.clear()
        refused.update(harness.slurm.write(channel, values))
        return not any("try again" in why for why in refused.values())

    harness.until(is_final, "Slurm to put off no write")
    return set(refused)


def until_ended(harness: Harness, *job_ids: int) -> list[JobRecord]:
    def ended() -> bool:
        found = records(harness, *job_ids)
        return {r.job_id for r in found} == {*job_ids} and all(r.end for r in found)

    harness.until(ended, f"jobs {job_ids} to end")
    return records(harness, *job_ids)


def assert_at_once(harness: Harness, second: int, shown: int | None) -> None:
    """One does not come before the other; an accelerated clock may have gone on in between."""
    assert shown is not None
    assert second <= shown <= second + harness.slack_seconds


def occupy(harness: Harness, partition: str = "pb", seconds: int = LONG) -> int:
    """Fill a partition, so that what comes after waits."""
    processors = len(PARTITIONS[partition]) * CPUS_PER_NODE
    job = harness.submit("biology", seconds, processors=processors, partition=partition)
    until_running(harness, job)
    return job


def waiting(harness: Harness, *, nice: int = 0, array: int = 0) -> int:
    """Submit a job that waits in an occupied partition."""
    job = harness.submit("physics", 60, partition="pb", nice=nice, array=array)
    # for a moment, until accounting has heard of it, Slurm may refuse to update a job
    harness.until(lambda: bool(records(harness, job)), f"the record of job {job}")
    assert job in pending(harness)
    return job


def until_known(harness: Harness, job_id: int) -> PendingJob:
    """Wait for a job's site factor: it is not known while the job may not start."""

    def known() -> bool:
        job = pending(harness).get(job_id)
        return job is not None and job.site_factor is not None

    harness.until(known, f"the site factor of job {job_id}")
    return pending(harness)[job_id]


# -- records


def test_a_finished_job_shows_when_and_where_it_ran(harness: Harness) -> None:
    before = harness.now()
    job = harness.submit("physics", 20, processors=2, partition="pa")
    (record,) = until_ended(harness, job)
    assert (record.account, record.user, record.partition) == ("physics", harness.user, "pa")
    assert (record.label, record.state, record.suspended) == (str(job), "COMPLETED", 0)
    assert record.start is not None
    assert record.end is not None
    assert before <= record.submit <= record.start
    assert record.end - record.start == record.elapsed
    assert 20 <= record.elapsed <= 20 + harness.slack_seconds
    assert (record.nodes, record.processors) == (("a1",), 2)


def test_the_controller_counts_submitted_jobs(harness: Harness) -> None:
    before = harness.slurm.controller().submitted
    harness.submit("physics", 5)
    assert harness.slurm.controller().submitted == before + 1


def test_a_running_job_has_no_end(harness: Harness) -> None:
    job = harness.submit("physics", LONG)
    first = until_running(harness, job)
    harness.wait(30)
    (second,) = records(harness, job)
    assert (second.state, second.start, second.end) == ("RUNNING", first.start, None)
    assert second.elapsed >= first.elapsed + 20
    assert job not in pending(harness)


def test_a_waiting_job_has_no_start(harness: Harness) -> None:
    occupy(harness)
    job = waiting(harness)
    (record,) = records(harness, job)
    assert (record.state, record.start, record.end) == ("PENDING", None, None)
    assert (record.elapsed, record.nodes, record.processors) == (0, (), 0)
    assert job not in window(harness, record.submit, harness.now())


def test_a_job_cancelled_while_it_waits_executed_nothing(harness: Harness) -> None:
    occupy(harness)
    job = waiting(harness)
    harness.cancel(job)
    (record,) = until_ended(harness, job)
    assert (record.state, record.elapsed, record.nodes) == ("CANCELLED", 0, ())
    # Slurm shows a start if accounting hears of the job and of its end together
    assert record.start in {None, record.end}


def test_a_job_cancelled_while_it_runs_ends(harness: Harness) -> None:
    job = harness.submit("physics", LONG)
    until_running(harness, job)
    harness.wait(30)
    harness.cancel(job)
    (record,) = until_ended(harness, job)
    assert record.state == "CANCELLED"
    assert 20 <= record.elapsed < LONG


def test_a_job_that_goes_on_after_its_end_has_its_last_work_later(harness: Harness) -> None:
    jobs = [harness.submit_that_goes_on("physics"), harness.submit("physics", 1)]
    ended = {job: until_ended(harness, job)[0] for job in jobs}
    runs = [run for record in ended.values() if (run := run_of(record, {})) is not None]
    kill_wait = harness.slurm.layout().kill_wait_seconds
    harness.wait(kill_wait)

    def beyond() -> list[int]:
        last = harness.slurm.last_work(runs)
        return [last[run.key] - (run.end or 0) for run in runs if run.key in last]

    harness.until(lambda: max(beyond(), default=0) >= kill_wait, "the end of the last step")
    goes_on, ends = beyond()
    assert kill_wait <= goes_on <= kill_wait + harness.slack_seconds
    assert 0 <= ends <= harness.slack_seconds


def test_a_requeued_job_has_two_records_under_one_id(harness: Harness) -> None:
    job = harness.submit("physics", LONG)
    until_running(harness, job)
    harness.wait(60)
    harness.requeue(job)
    harness.until(lambda: len([r for r in records(harness, job) if r.start]) == 2, "a second run")
    first, second = records(harness, job)
    assert (first.state, second.state) == ("REQUEUED", "RUNNING")
    assert first.start is not None
    assert second.start is not None
    assert first.end is not None
    assert second.end is None
    assert first.submit < second.submit
    assert first.start < first.end <= second.start
    assert first.elapsed == first.end - first.start
    assert first.nodes == second.nodes == ("a1",)


def test_a_job_is_eligible_from_its_submission(harness: Harness) -> None:
    occupy(harness)
    job = waiting(harness)
    (record,) = records(harness, job)
    assert_at_once(harness, record.submit, record.eligible)
    shown = pending(harness)[job]
    assert shown.waits_for_its_turn
    assert shown.eligible == record.eligible


def test_a_held_job_is_eligible_from_its_release(harness: Harness) -> None:
    occupy(harness)
    job = waiting(harness)
    harness.hold(job)
    held = pending(harness)[job]
    assert held.eligible is None
    assert not held.waits_for_its_turn
    harness.until(lambda: records(harness, job)[0].eligible is None, "the record to be held")
    harness.wait(30)
    before = harness.now()
    harness.release(job)
    harness.until(lambda: pending(harness)[job].eligible is not None, "an eligible time")
    harness.until(lambda: records(harness, job)[0].eligible is not None, "an eligible time")
    (record,) = records(harness, job)
    assert record.eligible is not None
    assert before <= record.eligible <= harness.now()
    shown = pending(harness)[job]
    assert shown.eligible == record.eligible
    assert shown.waits_for_its_turn
    assert shown.submit < before


def test_a_job_that_may_not_begin_yet_is_eligible_from_then(harness: Harness) -> None:
    later = harness.now() + 7200
    job = harness.submit("physics", 60, begin_after=7200)
    harness.until(lambda: pending(harness)[job].eligible is not None, "an eligible time")
    shown = pending(harness)[job]
    assert shown.eligible is not None
    assert later <= shown.eligible <= later + harness.slack_seconds
    assert not shown.waits_for_its_turn


def test_a_job_beyond_a_limit_does_not_wait_for_its_turn_alone(harness: Harness) -> None:
    harness.set_most_jobs("physics", 1)
    try:
        running = harness.submit("physics", LONG)
        until_running(harness, running)
        job = harness.submit("physics", LONG)
        harness.until(
            lambda: pending(harness)[job].reason == "AssocGrpJobsLimit", "the limit to be reached"
        )
        shown = pending(harness)[job]
        assert not shown.waits_for_its_turn
        assert shown.eligible is not None  # for all that Slurm says, it has been so all the time
        assert_at_once(harness, shown.submit, shown.eligible)
        harness.cancel(running)
        until_running(harness, job)
    finally:
        harness.set_most_jobs("physics", None)


def test_an_array_says_how_many_of_its_tasks_may_run_at_once(harness: Harness) -> None:
    running = occupy(harness)
    array = harness.submit("physics", LONG, partition="pb", array=4, at_once=2)
    harness.until(lambda: pending(harness)[array].eligible is not None, "an eligible time")
    shown = pending(harness)[array]
    assert (shown.tasks, shown.at_once) == (4, 2)
    assert shown.waits_for_its_turn
    free = waiting(harness, array=3)
    assert pending(harness)[free].at_once is None
    harness.cancel(running)
    harness.until(
        lambda: pending(harness).get(array, shown).reason == "JobArrayTaskLimit",
        "two tasks to run",
    )
    beyond = pending(harness)[array]
    assert (beyond.tasks, beyond.at_once) == (2, 2)
    assert not beyond.waits_for_its_turn


def test_the_eligible_time_stays_when_a_job_has_started_and_ended(harness: Harness) -> None:
    blocker = occupy(harness)
    job = waiting(harness)
    (before,) = records(harness, job)
    harness.wait(30 + 2 * harness.slack_seconds)
    harness.cancel(blocker)
    (after,) = until_ended(harness, job)
    assert after.start is not None
    assert after.start > after.submit + harness.slack_seconds
    assert before.submit == after.submit
    for record in (before, after):
        assert_at_once(harness, record.submit, record.eligible)


def test_a_requeued_job_is_eligible_anew(harness: Harness) -> None:
    job = harness.submit("physics", LONG)
    until_running(harness, job)
    harness.wait(60)
    harness.requeue(job)
    harness.until(lambda: len([r for r in records(harness, job) if r.start]) == 2, "a second run")
    first, second = records(harness, job)
    assert_at_once(harness, first.submit, first.eligible)
    assert second.start is not None
    assert second.eligible is not None
    assert second.submit <= second.eligible <= second.start


def test_limits_are_shown_while_jobs_wait_and_after(harness: Harness) -> None:
    occupy(harness)
    bounded = harness.submit("physics", 60, partition="pb", minutes=90)
    free = harness.submit("physics", 60, partition="pb", minutes=0)
    harness.until(lambda: len(records(harness, bounded, free)) == 2, "the records")
    assert [pending(harness)[job].limit for job in (bounded, free)] == [5400, None]
    limits = {bounded: 5400, free: None}
    assert {r.job_id: r.limit for r in records(harness, bounded, free)} == limits
    harness.cancel(bounded)
    harness.cancel(free)
    assert {r.job_id: r.limit for r in until_ended(harness, bounded, free)} == limits


def test_a_record_counts_the_tasks_that_it_stands_for(harness: Harness) -> None:
    occupy(harness)
    array = waiting(harness, array=4)
    assert pending(harness)[array].tasks == 4
    assert harness.slurm.write("site_factor", {f"{array}_1": 11}) == {}
    answer = {job.target: job.tasks for job in pending(harness).values()}
    assert answer == {f"{array}_[0,2-3]": 3, f"{array}_1": 1}


def test_tasks_of_an_array_have_ids_of_their_own(harness: Harness) -> None:
    blocker = occupy(harness)
    array = waiting(harness, array=3)  # slurmdbd may lose a task that starts as it is submitted
    harness.cancel(blocker)
    harness.until(lambda: len(by_label(harness, array)) == 3, "three tasks")
    tasks = by_label(harness, array)
    assert set(tasks) == {f"{array}_{task}" for task in range(3)}
    ids = {record.job_id for record in tasks.values()}
    assert len(ids) == 3
    assert array in ids


def by_label(harness: Harness, array: int) -> dict[str, JobRecord]:
    """The tasks of an array that have started."""
    now = harness.now()
    found = window(harness, now - 3600, now).values()
    return {r.label: r for r in found if r.label.startswith(f"{array}_") and r.start}


def test_the_time_of_a_suspension_is_reported(harness: Harness) -> None:
    job = harness.submit("physics", LONG)
    until_running(harness, job)
    harness.until(
        lambda: (
            any(record.start for record in records(harness, job))
            and harness.slurm.controller().accounting_backlog == 0
        ),
        "accounting to have heard all there is of the start",
    )
    harness.wait(40)
    harness.suspend(job)
    harness.until(lambda: records(harness, job)[0].state == "SUSPENDED", "the suspension")
    (first,) = records(harness, job)
    harness.wait(60)
    (second,) = records(harness, job)
    assert second.elapsed == first.elapsed >= 30
    assert second.suspended >= first.suspended + 50
    assert second.end is None
    harness.resume(job)
    harness.until(lambda: records(harness, job)[0].state == "RUNNING", "the job to go on")
    harness.wait(40)
    harness.cancel(job)
    (last,) = until_ended(harness, job)
    assert last.start is not None
    assert last.end is not None
    assert last.suspended >= 50
    assert last.elapsed == last.end - last.start - last.suspended >= 60


def test_a_job_on_two_nodes_shows_the_processors_of_both_together(harness: Harness) -> None:
    job = harness.submit("physics", 20, processors=6, partition="pb")
    (record,) = until_ended(harness, job)
    assert (record.nodes, record.processors) == (("b1", "b2"), 6)


def test_the_controller_knows_what_a_job_that_runs_holds_on_each_node(harness: Harness) -> None:
    job = harness.submit("physics", LONG, processors=6, partition="pb")
    run = run_of(until_running(harness, job), {})
    array = harness.submit("biology", LONG, processors=6, array=1, partition="pa")
    harness.until(lambda: len(window_of_running(harness)) == 2, "the task to run")
    task = next(run for run in window_of_running(harness) if run.key.job_id != job)
    assert run is not None
    assert task.label == f"{array}_0"
    requeued = replace(run, key=run.key._replace(start=run.key.start - 1))
    assert harness.slurm.processors_of([run, task, requeued]) == {
        run.key: {"b1": 4, "b2": 2},
        task.key: {"a1": 4, "a2": 2},
    }


def test_a_window_shows_what_existed_in_it(harness: Harness) -> None:
    running = harness.submit("physics", LONG)
    early = harness.submit("physics", 20)
    (ended_before,) = until_ended(harness, early)
    until_running(harness, running)
    assert ended_before.end is not None
    harness.wait(10)
    since = harness.now()
    inside = harness.submit("physics", 20)
    until_ended(harness, inside)
    harness.wait(10)
    until = harness.now()
    harness.wait(10)
    late = harness.submit("physics", LONG)
    until_running(harness, late)
    found = window(harness, since, until)
    assert {running, inside} <= set(found)
    assert not {early, late} & set(found)
    assert found[running].end is None
    assert found[inside] == records(harness, inside)[0]


def test_unknown_ids_are_passed_over(harness: Harness) -> None:
    job = harness.submit("physics", 20)
    until_ended(harness, job)
    assert [r.job_id for r in records(harness, NO_JOB, job)] == [job]
    assert records(harness, NO_JOB) == []


# -- pending jobs and priorities


def test_a_waiting_job_shows_all_about_itself(harness: Harness) -> None:
    occupy(harness)
    before = harness.now()
    job = harness.submit("particles", 60, processors=3, partition="pb", nice=5)
    answer = pending(harness)[job]
    assert (answer.target, answer.label) == (str(job), str(job))
    assert (answer.account, answer.user, answer.partition) == ("particles", harness.user, "pb")
    assert (answer.qos, answer.processors) == ("normal", 3)
    assert (answer.nice, answer.site_factor, answer.priority) == (5, 0, BASE_PRIORITY - 5)
    assert before <= answer.submit <= harness.now()


@pytest.mark.parametrize("channel", JOB_CHANNELS)
def test_what_is_written_moves_the_priority_by_as_much(harness: Harness, channel: str) -> None:
    occupy(harness)
    field = CHANNELS[channel]
    assert field.job_field is not None
    jobs = [waiting(harness, nice=7) for _ in range(3)]
    values = {str(jobs[0]): -300, str(jobs[1]): 20}
    before = pending(harness)
    assert harness.slurm.write(channel, values) == {}
    after = pending(harness)
    for job in jobs[:2]:
        value = values[str(job)]
        assert field.shown(after[job]) == value
        difference = value - (field.shown(before[job]) or 0)
        assert after[job].priority - before[job].priority == field.job_field.sign * difference
    assert after[jobs[2]] == before[jobs[2]]


def test_a_written_priority_is_taken_back_by_zero(harness: Harness) -> None:
    occupy(harness)
    job = waiting(harness)
    before = pending(harness)[job]
    for channel in JOB_CHANNELS:
        assert harness.slurm.write(channel, {str(job): -50}) == {}
        assert harness.slurm.write(channel, {str(job): 0}) == {}
    after = pending(harness)[job]
    assert (after.priority, after.nice, after.site_factor) == (before.priority, 0, 0)


def test_a_priority_does_not_sink_below_one(harness: Harness) -> None:
    occupy(harness)
    job = waiting(harness)
    harness.slurm.write("site_factor", {str(job): -2 * BASE_PRIORITY})
    answer = pending(harness)[job]
    assert (answer.site_factor, answer.priority) == (-2 * BASE_PRIORITY, 1)


def test_what_users_do_to_their_nice_is_reported(harness: Harness) -> None:
    occupy(harness)
    job = waiting(harness)
    harness.slurm.write("nice", {str(job): -100})
    harness.set_nice(job, 40)
    assert pending(harness)[job].nice == 40


def test_a_fixed_priority_is_known_and_nothing_written_counts_until_a_release(
    harness: Harness,
) -> None:
    occupy(harness)
    job, other = waiting(harness, nice=5), waiting(harness)
    harness.slurm.write("site_factor", {str(job): 300, str(other): 300})
    harness.fix_priority(job, 9_000_000)
    until_known(harness, other)
    fixed, computed = pending(harness)[job], pending(harness)[other]
    assert (fixed.is_fixed, fixed.priority, fixed.nice) == (True, 9_000_000, 0)
    assert (fixed.site_factor, fixed.association) == (None, None)
    assert (computed.is_fixed, computed.site_factor) == (False, 300)
    for channel, value in (("site_factor", 400), ("nice", 60)):
        assert harness.slurm.write(channel, {str(job): value}) == {}
        assert harness.slurm.values_of(channel, [job]) == {job: 0}
    assert pending(harness)[job].priority == 9_000_000
    harness.hold(job)
    harness.release(job)
    harness.until(lambda: pending(harness)[job].site_factor is not None, "factors again")
    after = pending(harness)[job]
    assert (after.is_fixed, after.site_factor, after.nice) == (False, 400, 0)
    assert after.priority == computed.priority + 100


def test_an_array_that_waits_is_one_job_and_is_written_as_one(harness: Harness) -> None:
    blocker = occupy(harness)
    array = waiting(harness, array=4)
    answer = pending(harness)
    assert set(answer) == {array}
    assert answer[array].target == f"{array}_[0-3]"
    assert harness.slurm.write("site_factor", {answer[array].target: 11}) == {}
    after = pending(harness)
    assert set(after) == {array}
    assert after[array].site_factor == 11
    assert after[array].priority == answer[array].priority + 11
    harness.cancel(blocker)
    harness.until(lambda: len(by_label(harness, array)) == 4, "four tasks")


def test_the_controller_knows_what_has_started_at_once(harness: Harness) -> None:
    def started(array: int) -> dict[str, StartedJob]:
        return {one.label: one for one in harness.slurm.started() if one.array_job_id == array}

    array = harness.submit("physics", LONG, partition="pb", array=2)
    names = {f"{array}_{task}" for task in range(2)}
    harness.until(lambda: started(array).keys() == names, "both tasks to start")
    now = harness.now()
    tasks = started(array)
    assert {(one.account, one.array_job_id) for one in tasks.values()} == {("physics", array)}
    assert len({one.job_id for one in tasks.values()}) == 2
    assert all(now - 7200 <= one.submit <= now for one in tasks.values())
    waits = harness.submit("biology", LONG, processors=2 * CPUS_PER_NODE, partition="pb")
    assert waits not in {one.job_id for one in harness.slurm.started()}
    one, other = tasks[f"{array}_0"], tasks[f"{array}_1"]
    harness.suspend(one.job_id)
    assert one in harness.slurm.started()
    harness.resume(one.job_id)
    harness.cancel(array)
    harness.until(lambda: not started(array), "both tasks to end")
    assert other not in harness.slurm.started()


def test_a_job_says_on_which_others_it_depends_that_have_not_ended(harness: Harness) -> None:
    blocker, first, array = occupy(harness), waiting(harness), waiting(harness, array=2)
    both = harness.submit("physics", 1, after=(blocker, first))
    one = harness.submit("biology", 1, after=(both,))
    tasks = harness.submit("physics", 1, after=(array,))
    dependent, read = (both, one, tasks), harness.slurm.dependencies
    harness.until(lambda: pending(harness).keys() >= {*dependent}, "three jobs to wait")
    for job in dependent:
        found = pending(harness)[job]
        assert (found.reason, found.eligible) == ("Dependency", None)
    assert read([*dependent, first]) == {both: (blocker, first), one: (both,), tasks: (array,)}
    assert read([one]) == {one: (both,)}
    harness.cancel(first)
    left = {both: (blocker,), one: (both,), tasks: (array,)}
    harness.until(lambda: read(dependent) == left, "one to be left")
    harness.cancel(blocker)
    harness.until(lambda: not read(dependent), "none to be left")


def test_reservations_of_whole_nodes_are_read(harness: Harness) -> None:
    assert harness.slurm.reservations() == []
    begin = harness.now() // 60 * 60 + 7200
    later = Reservation(name="later", begin=begin, end=begin + 3600, nodes=PARTITIONS["pa"])
    harness.reserve(later)
    assert harness.slurm.reservations() == [later]
    if isinstance(harness, RealHarness):  # jobs of the simulated cluster heed no reservation
        job = harness.submit("physics", 60, partition="pa", minutes=180)

        def lacks() -> str:
            return lack_of(pending(harness)[job].reason).in_words

        harness.until(lambda: "maintenance" in lacks(), "a job to wait for the maintenance")


def test_a_task_written_alone_leaves_its_array(harness: Harness) -> None:
    occupy(harness)
    array = waiting(harness, array=4)
    assert harness.slurm.write("site_factor", {f"{array}_1": 11}) == {}
    answer = {job.target: job.site_factor for job in pending(harness).values()}
    assert answer == {f"{array}_[0,2-3]": 0, f"{array}_1": 11}


def test_tasks_with_a_nice_of_their_own_are_distinguished(harness: Harness) -> None:
    occupy(harness)
    array = waiting(harness, array=6, nice=3)
    values = {f"{array}_1": -7, f"{array}_4": -9}
    assert harness.slurm.write("nice", values) == {}
    answer = {job.target: job.nice for job in pending(harness).values()}
    rest = f"{array}_[0,2-3,5]"
    assert answer == values | {rest: 3}
    assert harness.slurm.write("nice", {rest: -4}) == {}
    answer = {job.target: job.nice for job in pending(harness).values()}
    assert answer == values | {rest: -4}


def test_an_array_of_hundreds_of_tasks_stays_one_job(harness: Harness) -> None:
    occupy(harness)
    array = waiting(harness, array=700)
    for value in (5, 6):
        assert harness.slurm.write("site_factor", {f"{array}_[0-699]": value}) == {}
        answer = pending(harness)
        assert [(job.target, job.site_factor) for job in answer.values()] == [
            (f"{array}_[0-699]", value)
        ]


def test_a_job_that_is_gone_is_refused_and_the_others_are_written(harness: Harness) -> None:
    finished = harness.submit("physics", 20)
    until_ended(harness, finished)
    occupy(harness)
    first, last = waiting(harness), waiting(harness)
    values = {str(job): -5 for job in (first, finished, NO_JOB, last)}
    for channel in JOB_CHANNELS:
        refused = harness.slurm.write(channel, values)
        assert set(refused) == {str(finished), str(NO_JOB)}
        assert all(refused.values())
    answer = pending(harness)
    assert [(answer[job].site_factor, answer[job].nice) for job in (first, last)] == [(-5, -5)] * 2


def test_many_values_are_written_at_once_and_each_complaint_finds_its_target(
    harness: Harness,
) -> None:
    occupy(harness)
    array, many, job = waiting(harness, array=10), waiting(harness, array=60), waiting(harness)
    values = {f"{many}_{task}": 1000 + task for task in range(60)}
    values |= {str(NO_JOB): 1, f"{array}_[4-9]": -30, f"{many}_[60-61]": 2, str(job): 31}
    for channel in JOB_CHANNELS:
        assert write_for_good(harness, channel, values) == {str(NO_JOB), f"{many}_[60-61]"}
        found = {
            task: CHANNELS[channel].shown(waiting_job)
            for waiting_job in pending(harness).values()
            for task in tasks_of(waiting_job)
        }
        assert found == {
            **{f"{many}_{task}": 1000 + task for task in range(60)},
            **{f"{array}_{task}": -30 if task >= 4 else 0 for task in range(10)},
            str(job): 31,
        }


def tasks_of(job: PendingJob) -> list[str]:
    """The names of all that a waiting record stands for."""
    base, _, tasks = job.target.partition("_")
    return [f"{base}_{task}" for task in RangeSet(tasks.strip("[]"))] if tasks else [base]


def test_an_array_of_which_a_task_is_gone_is_refused_and_the_others_are_written(
    harness: Harness,
) -> None:
    occupy(harness)
    array = waiting(harness, array=2)
    target = f"{array}_[0-3]"
    assert set(harness.slurm.write("site_factor", {target: 3})) == {target}
    assert pending(harness)[array].site_factor == 3


def test_a_held_job_is_reported_and_keeps_what_it_has(harness: Harness) -> None:
    occupy(harness)
    job = waiting(harness)
    harness.slurm.write("site_factor", {str(job): 30})
    harness.slurm.write("nice", {str(job): -4})
    harness.hold(job)
    held = pending(harness)[job]
    assert (held.priority, held.site_factor, held.nice) == (0, None, -4)
    assert held.reason.startswith("JobHeld")
    harness.release(job)
    released = until_known(harness, job)
    assert (released.site_factor, released.nice) == (30, -4)
    assert released.priority == BASE_PRIORITY + 34


def test_a_held_job_can_be_written_and_stays_held(harness: Harness) -> None:
    occupy(harness)
    job = waiting(harness)
    harness.hold(job)
    assert harness.slurm.write("site_factor", {str(job): 30}) == {}
    assert pending(harness)[job].priority == 0
    harness.release(job)
    assert until_known(harness, job).site_factor == 30


def test_what_stands_at_some_jobs_is_read_by_their_numbers(harness: Harness) -> None:
    running = occupy(harness)
    job, array, held = waiting(harness, nice=3), waiting(harness, array=4), waiting(harness, nice=8)
    other = waiting(harness)
    values = {str(job): 30, f"{array}_[0-3]": -20, f"{array}_1": 40, str(other): 50}
    assert harness.slurm.write("site_factor", values) == {}
    harness.hold(held)
    (task,) = (one.job_id for one in pending(harness).values() if one.target == f"{array}_1")
    for one in (job, array, task):
        until_known(harness, one)
    asked = [job, array, task, held, running, NO_JOB]
    factors = {job: 30, array: -20, task: 40, held: None}
    assert harness.slurm.values_of("site_factor", asked) == factors
    assert harness.slurm.values_of("nice", asked) == {job: 3, array: 0, task: 0, held: 8}
    assert harness.slurm.write("nice", {str(job): -7, str(held): -9}) == {}
    many = [*asked, *range(NO_JOB, NO_JOB + 300)]
    assert harness.slurm.values_of("nice", many) == {job: -7, array: 0, task: 0, held: -9}
    assert harness.slurm.values_of("site_factor", many) == factors
    for ids in ([], [NO_JOB], [running]):
        assert harness.slurm.values_of("nice", ids) == {}
    assert harness.slurm.values_of("nice", [held]) == {held: -9}


def test_a_requeued_job_keeps_what_was_written(harness: Harness) -> None:
    job = occupy(harness)
    harness.slurm.write("site_factor", {str(job): 30})
    harness.slurm.write("nice", {str(job): -4})
    rival = waiting(harness)
    harness.slurm.write("site_factor", {str(rival): 1000})
    harness.wait(60)
    harness.requeue(job)
    answer = until_known(harness, job)
    assert (answer.site_factor, answer.nice, answer.priority) == (30, -4, BASE_PRIORITY + 34)


def test_the_higher_priority_starts_first(harness: Harness) -> None:
    occupy(harness, seconds=180)
    first = harness.submit("physics", 30, processors=8, partition="pb")
    second = harness.submit("physics", 30, processors=8, partition="pb")
    harness.until(lambda: bool(records(harness, second)), "the record of the second job")
    harness.slurm.write("site_factor", {str(second): 100})
    later, earlier = sorted(until_ended(harness, first, second), key=lambda r: r.job_id)
    assert earlier.end is not None
    assert later.start is not None
    assert earlier.end <= later.start


def test_the_priority_of_a_qos_is_read_back_and_reaches_what_waits(harness: Harness) -> None:
    occupy(harness)
    job = waiting(harness)
    assert harness.slurm.qos_priorities()["normal"] == 0
    assert harness.slurm.write("qos", {"normal": 7, "unheard-of": 3}).keys() == {"unheard-of"}
    assert harness.slurm.qos_priorities()["normal"] == 7
    harness.wait(CALC_PERIOD_SECONDS)
    harness.until(
        lambda: pending(harness)[job].priority == BASE_PRIORITY + QOS_WEIGHT, "the recalculation"
    )
    assert harness.slurm.write("qos", {"normal": 0}) == {}


def test_the_priority_of_an_account_is_that_of_its_new_jobs_and_of_touched_ones(
    harness: Harness,
) -> None:
    occupy(harness)
    touched, patient = waiting(harness), waiting(harness)
    values = {"physics": 300, "particles": 300, "quarks": 300, "biology": 200}
    refused = harness.slurm.write("association", values | {"unheard-of": 5})
    assert refused.keys() == {"unheard-of"}
    stored = harness.slurm.account_priorities()
    assert {name: (stored[name].own, stored[name].due) for name in values} == {
        name: (value, value) for name, value in values.items()
    }
    assert in_force(harness) == values
    deep = harness.submit("quarks", 60, partition="pb")
    known = until_known(harness, deep)
    assert (known.association, known.priority) == (300, BASE_PRIORITY + 300)
    assert harness.slurm.write("site_factor", {str(touched): 0}) == {}
    assert pending(harness)[touched].association == 300
    harness.wait(CALC_PERIOD_SECONDS)
    harness.until(lambda: pending(harness)[patient].association == 300, "the recalculation")

    assert harness.slurm.write("association", values | dict.fromkeys(values, 7)) == {}
    upwards = ("quarks", "particles", "physics", "biology")
    assert harness.slurm.write("association", dict.fromkeys(upwards, UNSET_PRIORITY)) == {}
    assert {harness.slurm.account_priorities()[name].stored for name in values} == {UNSET_PRIORITY}
    assert in_force(harness) == dict.fromkeys(values, 0)


def test_a_users_own_priority_is_shown_beside_the_accounts(harness: Harness) -> None:
    association = Association("physics", harness.user)
    harness.slurm.write("association", {"physics": 300})
    assert harness.slurm.account_priorities()["particles"].due == 300
    harness.set_user_priority("physics", harness.user, 77)
    assert harness.slurm.users_priorities_in_force(["physics"])[association] == 77
    assert harness.slurm.priorities_in_force(["physics"]) == {"physics": 300}
    harness.set_user_priority("physics", harness.user, UNSET_PRIORITY)
    assert harness.slurm.write("association", {"physics": 0}) == {}
    assert harness.slurm.account_priorities()["physics"].own == 0
    assert harness.slurm.write("association", {"physics": UNSET_PRIORITY}) == {}
    assert harness.slurm.users_priorities_in_force(["physics"]).get(association, 0) == 0


def in_force(harness: Harness) -> dict[str, int]:
    """Account -> the priority that the controller goes by, for its users as well."""
    found = harness.slurm.priorities_in_force(list(ACCOUNTS))
    by_account = {account: {found[account]} for account in ACCOUNTS}
    for association, priority in harness.slurm.users_priorities_in_force(list(ACCOUNTS)).items():
        by_account[association.account].add(priority)
    return {account: priority for account, (priority,) in by_account.items()}


# -- the cluster


def test_the_layout_is_the_clusters(harness: Harness) -> None:
    layout = harness.slurm.layout()
    assert harness.slurm.cluster() == layout.cluster
    assert layout.cluster == CLUSTER
    assert Release.parse(layout.version) is not None
    assert untested(layout.version) is None
    assert layout.enforces_accounts
    assert {name: node.tres["cpu"] for name, node in layout.nodes.items()} == dict.fromkeys(
        NODES, CPUS_PER_NODE
    )
    partitions = {name: partition.nodes for name, partition in layout.partitions.items()}
    assert partitions == {**PARTITIONS, "all": NODES}
    assert all(p.allow_accounts == () for p in layout.partitions.values())
    assert layout.accounts.items() >= ACCOUNTS.items()
    assert layout.qos_priorities == {"normal": 0}
    assert not harness.slurm.coordinators().powerless
    settings = layout.settings
    assert settings.type == "priority/multifactor"
    weights = {"Age": 0, "Partition": BASE_PRIORITY, "QOS": QOS_WEIGHT}
    assert {name: settings.weights[name] for name in weights} == weights
    assert settings.calc_period_seconds == CALC_PERIOD_SECONDS
    assert settings.site_factor_plugin == ""


def test_a_drained_node_has_what_its_jobs_hold_until_it_is_back(harness: Harness) -> None:
    job = harness.submit("physics", LONG, processors=2, partition="pa")
    until_running(harness, job)

    def usable() -> dict[str, int]:
        return {name: node.usable("cpu") for name, node in harness.slurm.nodes().items()}

    whole = dict.fromkeys(NODES, CPUS_PER_NODE)
    assert usable() == whole
    harness.drain("a1")
    assert usable() == {**whole, "a1": 2}
    other = harness.submit("physics", LONG, processors=2, partition="pa")
    assert until_running(harness, other).nodes == ("a2",)
    harness.cancel(job)
    harness.until(lambda: usable() == {**whole, "a1": 0}, "the drained node to be empty")
    assert {name: node.closed for name, node in harness.slurm.nodes().items()} == {
        name: name == "a1" for name in NODES
    }
    harness.undrain("a1")
    harness.until(lambda: usable() == whole, "the node to be back")


def test_the_controller_shows_its_clock(harness: Harness) -> None:
    before = harness.now()
    assert before <= harness.slurm.controller().time <= harness.now()


def test_the_controller_counts_what_others_change_and_not_what_we_write(harness: Harness) -> None:
    occupy(harness)
    job, array = waiting(harness), waiting(harness, array=3)
    until_known(harness, job)

    def counted() -> int:
        return harness.slurm.controller().changed

    before = counted()
    harness.slurm.write("site_factor", {str(job): 5, f"{array}_[0-2]": 6})
    harness.slurm.write("nice", {str(job): -5})
    harness.until(lambda: counted() == before, "what we wrote to be left out")
    harness.set_account(job, "biology")
    harness.until(lambda: counted() == before + 1, "a change of the account to be counted")
    answer = pending(harness)[job]
    assert (answer.account, answer.site_factor, answer.nice) == ("biology", 5, -5)
    harness.set_nice(job, 2)
    harness.hold(job)
    harness.until(lambda: counted() == before + 3, "a change of the nice and a hold to be counted")
    harness.release(job)


def test_we_may_write_everywhere(harness: Harness) -> None:
    assert [harness.slurm.privilege(channel) for channel in CHANNELS] == [None] * len(CHANNELS)


def test_without_the_controller_the_records_are_still_there(harness: Harness) -> None:
    done = harness.submit("physics", 20)
    until_ended(harness, done)
    occupy(harness)
    job = waiting(harness)
    harness.slurm.account_priorities()  # from the controller comes the name of the cluster
    harness.take_down("slurmctld")
    began = time.monotonic()
    for ask in (
        harness.slurm.controller,
        harness.slurm.pending,
        harness.slurm.layout,
        harness.slurm.nodes,
        lambda: harness.slurm.values_of("nice", [job]),
        lambda: harness.slurm.write("site_factor", {str(job): 5}),
        lambda: harness.slurm.write("nice", {str(job): -5}),
        lambda: harness.slurm.write("association", {"physics": 5}),
        lambda: harness.slurm.priorities_in_force(["physics"]),
    ):
        with pytest.raises(SlurmUnavailableError):
            ask()
    assert time.monotonic() - began < 20
    assert [r.state for r in records(harness, done)] == ["COMPLETED"]
    assert harness.slurm.qos_priorities() == {"normal": 0}
    assert harness.slurm.account_priorities()["physics"].stored == UNSET_PRIORITY
    harness.bring_up("slurmctld")
    answer = pending(harness)[job]
    assert (answer.site_factor, answer.nice) == (0, 0)


def test_without_accounting_jobs_still_wait_and_records_come_later(harness: Harness) -> None:
    occupy(harness)
    since = harness.now()
    job = waiting(harness)
    harness.take_down("slurmdbd")
    missed = harness.submit("physics", 20, partition="pa")
    for ask in (
        lambda: list(harness.slurm.records(since, since + 60)),
        lambda: list(harness.slurm.records_of([job])),
        harness.slurm.qos_priorities,
        harness.slurm.layout,
        lambda: harness.slurm.write("qos", {"normal": 5}),
        harness.slurm.account_priorities,
        harness.slurm.coordinators,
        lambda: harness.slurm.write("association", {"physics": 5}),
    ):
        with pytest.raises(SlurmUnavailableError):
            ask()
    assert job in pending(harness)
    assert harness.slurm.write("site_factor", {str(job): 5}) == {}
    assert pending(harness)[job].site_factor == 5
    harness.until(lambda: harness.slurm.controller().accounting_backlog > 0, "a backlog")
    harness.wait(60)
    harness.bring_up("slurmdbd")
    (record,) = until_ended(harness, missed)
    assert record.state == "COMPLETED"
    assert record.elapsed >= 20
    harness.until(lambda: harness.slurm.controller().accounting_backlog == 0, "an empty backlog")
    # slurmdbd may hear of the end before the start: until then the record has no partition
    assert [window(harness, since, harness.now())[missed]] == records(harness, missed)


@pytest.mark.real_slurm
@pytest.mark.skipif(not HAS_PYSLURM, reason="pyslurm is not installed")
def test_a_frozen_controller_freezes_no_thread_beside_that_of_pyslurm(
    cluster: PrivateSlurm,
) -> None:
    slurm = connect(Connection(environment=cluster.environment, timeout_seconds=2), "pyslurm")
    before = slurm.controller()
    beats = 0
    done = threading.Event()

    def beat() -> None:
        nonlocal beats
        while not done.wait(0.05):
            beats += 1

    cluster.freeze("slurmctld")
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(beat)
            began = time.monotonic()
            with pytest.raises(SlurmUnavailableError, match="pyslurm took longer than 2 s"):
                slurm.controller()
            took = time.monotonic() - began
            done.set()
    finally:
        cluster.thaw("slurmctld")
    assert 2 <= took < 5
    assert beats > 10
    assert slurm.controller().time > before.time


def test_writing_stops_when_the_controller_goes_away_midway(harness: Harness) -> None:
    """After it the controller gives later jobs numbers that accounting knows from tasks it forgot.

    So it comes after all that look for their jobs' records.
    """
    occupy(harness)
    array = waiting(harness, array=1000)
    values = {f"{array}_{task}": 1 + task for task in range(1000)}
    harness.take_down_midway()
    began = time.monotonic()
    with pytest.raises(SlurmUnavailableError):
        harness.slurm.write("site_factor", values)
    assert time.monotonic() - began < 60  # each order after the first complaint would take 9 s
    harness.bring_up("slurmctld")
    found = {job.target: job.site_factor for job in pending(harness).values()}
    assert any(target not in found or found[target] == 0 for target in values)
    assert all(found.get(target) in {None, 0, value} for target, value in values.items())
