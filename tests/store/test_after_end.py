"""Work after the end of runs, in the store."""

from __future__ import annotations

from dataclasses import replace

from shapleyprio.store import Store, UserAfterEnd
from tests.store.examples import BEGIN, placed_run, work_after_end

ROW = work_after_end()


def test_what_users_executed_after_the_ends_of_their_runs_is_summed(store: Store) -> None:
    rows = [
        ROW,
        replace(ROW, job_id=2, end=BEGIN + 20, processor_seconds=2**40),
        replace(ROW, job_id=3, user="bob"),
        replace(ROW, job_id=4, organization="", processor_seconds=7),
    ]
    with store.cluster("c").transaction() as changes:
        assert changes.runs.work_after_end_until() is None
        changes.runs.save_work_after_end(rows[:2], asked_until=BEGIN + 20)
        changes.runs.save_work_after_end(rows[1:], asked_until=BEGIN + 30)
        assert changes.runs.work_after_end_until() == BEGIN + 30
        eve = UserAfterEnd(
            user="eve",
            organization="physics",
            jobs=2,
            processor_seconds=2**40 + 60,
            last=BEGIN + 20,
        )
        assert changes.runs.users_after_end(0, BEGIN + 99, 1) == [eve]
        others = changes.runs.users_after_end(0, BEGIN + 99, 9)[1:]
        assert [(one.user, one.organization) for one in others] == [("bob", "physics"), ("eve", "")]
        (late,) = changes.runs.users_after_end(BEGIN + 20, BEGIN + 21, 9)
        assert late.jobs == 1
        assert changes.prune_history(BEGIN + 20, pushes_before=0) == 3
        assert changes.runs.users_after_end(0, BEGIN + 99, 9) == [late]
    with store.cluster("other").reading() as view:
        assert view.runs.users_after_end(0, BEGIN + 99, 9) == []


def test_runs_that_ended_come_by_their_ends(store: Store) -> None:
    with store.cluster("c").transaction() as changes:
        ends = {1: BEGIN + 30, 2: BEGIN + 10, 3: None, 4: BEGIN + 20, 5: BEGIN + 20}
        for job_id, end in ends.items():
            run, allocations = placed_run(job_id)
            changes.runs.put([(replace(run, end=end), allocations)])
        found = changes.runs.runs_ended_in(BEGIN + 10, BEGIN + 30, 9)
        assert [run.key.job_id for run in found] == [4, 5, 1]
        assert changes.runs.runs_ended_in(BEGIN + 10, BEGIN + 30, 2) == found[:2]
