"""What every kind of accounting record means as a run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.fairness.runs import UNFINISHED_STATES, JobRecord, RunKey, run_of
from shapleyprio.fairness.tenure import NOBODY, Allocation, Tenures
from shapleyprio.fairness.worth import worth
from tests.fairness.examples import HORIZONS, job_record, parts_of, worth_by_parts

FINAL_STATES = [
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "OUT_OF_MEMORY",
    "REQUEUED",
]


def times(record: JobRecord) -> tuple[int, int | None]:
    run = run_of(record, {})
    assert run is not None
    return run.begin, run.end if run.paused_at is None else run.paused_at


@pytest.mark.parametrize("state", FINAL_STATES)
def test_however_it_ended_the_processors_worked_from_start_to_end(state: str) -> None:
    assert times(job_record(start=100, end=160, state=state)) == (100, 160)


def test_a_run_keeps_what_was_accounted() -> None:
    record = job_record(7, start=100, end=160, submit=40, label="3_4", processors={"n1": 2})
    run = run_of(record, {})
    assert run is not None
    assert run.key == RunKey(job_id=7, submit=40, start=100)
    assert (run.label, run.account, run.user, run.state) == ("3_4", "phys", "ann", "COMPLETED")
    assert run.processors == {"n1": 2}


@pytest.mark.parametrize(
    ("submit", "eligible", "release"),
    [(40, 70, 70), (40, 40, 40), (40, None, 40), (40, 30, 40), (40, 110, 100), (120, 130, 100)],
)
def test_a_run_is_released_when_it_was_eligible_but_not_before_submission_nor_after_its_start(
    submit: int, eligible: int | None, release: int
) -> None:
    run = run_of(job_record(start=100, end=160, submit=submit, eligible=eligible), {})
    assert run is not None
    assert run.release == release


def test_a_suspension_changes_neither_release_nor_limit() -> None:
    run = run_of(job_record(start=100, end=190, submit=40, eligible=70, limit=80, suspended=30), {})
    assert run is not None
    assert (run.release, run.begin, run.limit) == (70, 130, 80)


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "REQUEUE_HOLD", "STOPPED", "CONFIGURING"])
def test_an_end_shown_for_an_unfinished_job_is_not_believed(state: str) -> None:
    assert times(job_record(start=100, end=160, state=state)) == (100, None)


def test_a_final_state_without_an_end_still_runs_until_accounting_knows_better() -> None:
    assert times(job_record(start=100, end=None, state="NODE_FAIL")) == (100, None)


def test_a_job_that_waits_has_no_run() -> None:
    assert run_of(job_record(start=None, state="PENDING", processors={}), {}) is None


def test_a_job_cancelled_before_it_started_has_no_run() -> None:
    cancelled = job_record(start=100, end=100, state="CANCELLED", processors={})
    assert run_of(cancelled, {}) is None


def test_a_requeued_job_has_a_run_for_each_execution() -> None:
    first = run_of(job_record(7, start=100, end=160, state="PREEMPTED"), {})
    second = run_of(job_record(7, start=200, end=230), {})
    assert first is not None
    assert second is not None
    assert first.key != second.key
    assert (first.begin, first.end) == (100, 160)
    assert (second.begin, second.end) == (200, 230)


def test_a_resized_job_has_a_run_for_each_size_one_after_the_other() -> None:
    first = run_of(job_record(7, submit=90, start=100, end=160, state="RESIZING"), {})
    second = run_of(job_record(7, submit=160, eligible=160, start=100, end=230), {})
    assert first is not None
    assert second is not None
    assert first.key != second.key
    assert (first.begin, first.end) == (100, 160)
    assert (second.begin, second.end) == (160, 230)


def test_array_tasks_and_heterogeneous_components_are_runs_of_their_own() -> None:
    task = job_record(34, start=100, end=160, label="33_1")
    other = job_record(35, start=100, end=160, label="33_2")
    component = job_record(36, start=100, end=160, label="36+0", processors={"n1": 4})
    runs = [run_of(record, {}) for record in (task, other, component)]
    assert [run.label for run in runs if run] == ["33_1", "33_2", "36+0"]
    assert len({run.key for run in runs if run}) == 3


# suspension: end − start = elapsed + suspended


@given(
    start=st.integers(0, 100),
    before=st.integers(0, 30),
    pause=st.integers(0, 30),
    after=st.integers(0, 30),
)
def test_a_pause_neither_adds_nor_loses_a_part(
    start: int, before: int, pause: int, after: int
) -> None:
    suspended_at, resumed_at = start + before, start + before + pause
    end = resumed_at + after
    stages = [
        (job_record(start=start, state="RUNNING", elapsed=before), suspended_at),
        (job_record(start=start, state="SUSPENDED", elapsed=before), suspended_at),
        (
            job_record(start=start, state="SUSPENDED", elapsed=before, suspended=pause),
            resumed_at,
        ),
        (job_record(start=start, state="RUNNING", elapsed=before + after, suspended=pause), end),
        (job_record(start=start, end=end, suspended=pause), end),
        (
            job_record(start=start, end=resumed_at, suspended=pause, state="CANCELLED"),
            resumed_at,
        ),
    ]
    for record, t in stages:
        assert len(parts_of(*times(record), t)) == record.elapsed


@given(
    start=st.integers(0, 100),
    before=st.integers(0, 30),
    pause=st.integers(0, 30),
    after=st.integers(0, 30),
    later=st.integers(0, 60),
    horizon=HORIZONS,
)
def test_a_suspended_job_is_never_worth_more_than_its_parts_were(
    start: int, before: int, pause: int, after: int, later: int, horizon: int | None
) -> None:
    suspended_at = start + before
    end = suspended_at + pause + after
    t = end + later
    parts = worth_by_parts(start, suspended_at, t, horizon)
    parts += worth_by_parts(suspended_at + pause, end, t, horizon)
    begin, until = times(job_record(start=start, end=end, suspended=pause))
    assert worth(begin, until, t, horizon=horizon) <= parts


def test_while_suspended_no_part_is_executed_even_if_an_end_is_shown() -> None:
    record = job_record(start=100, end=190, state="SUSPENDED", elapsed=30, suspended=60)
    assert times(record) == (100, 130)


def test_a_job_suspended_longer_than_it_lasted_has_no_parts() -> None:
    begin, end = times(job_record(start=100, end=130, suspended=50, elapsed=0))
    assert begin == end


def test_an_end_before_the_start_means_no_parts() -> None:
    begin, end = times(job_record(start=100, end=90))
    assert begin == end


@given(
    start=st.integers(0, 100),
    length=st.integers(0, 100),
    suspended=st.integers(0, 150),
    state=st.sampled_from([*FINAL_STATES, *sorted(UNFINISHED_STATES)]),
    ended=st.booleans(),
)
def test_no_record_makes_a_run_that_ends_before_it_begins(
    start: int, length: int, suspended: int, state: str, ended: bool
) -> None:
    end = start + length if ended else None
    begin, until = times(
        job_record(start=start, end=end, suspended=suspended, elapsed=length, state=state)
    )
    assert until is None or begin <= until


# where it ran


SIZES = {"p1": 4, "b1": 2, "p2": 3, "n0": 0}


def allocations(record: JobRecord) -> tuple[Allocation, ...]:
    tenures = Tenures()
    tenures.observe("account", {"phys": "physics", "nobodys": NOBODY}, 0)
    tenures.observe("node", {"p1": "physics", "p2": "physics", "b1": "biology", "x": NOBODY}, 0)
    run = run_of(record, SIZES)
    assert run is not None
    return tenures.allocations(run)


def test_a_job_across_the_nodes_of_several_owners_is_shared_by_processors() -> None:
    record = job_record(start=100, end=160, processors={"p1": 4, "b1": 2, "p2": 3})
    assert allocations(record) == (
        Allocation("physics", "biology", 2, 100, 160),
        Allocation("physics", "physics", 7, 100, 160),
    )


def test_nodes_nobody_owns_earn_nobody_a_contribution_but_their_parts_count_as_utility() -> None:
    record = job_record(start=100, end=160, processors={"x": 4, "never-heard-of": 2})
    assert allocations(record) == (Allocation("physics", NOBODY, 6, 100, 160),)


@pytest.mark.parametrize("account", ["nobodys", "never-heard-of"])
def test_what_accounts_nobody_claims_use_is_kept_apart_as_nobodys(
    account: str,
) -> None:
    record = replace(job_record(start=100, end=160, processors={"b1": 4}), account=account)
    assert allocations(record) == (Allocation(NOBODY, "biology", 4, 100, 160),)


def test_a_node_without_processors_in_the_configured_weight_is_left_out() -> None:
    record = job_record(start=100, end=160, processors={"n0": 0, "b1": 2})
    assert allocations(record) == (Allocation("physics", "biology", 2, 100, 160),)
