"""How long jobs waited is found by when they started, and who waits now is known as last seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shapleyprio.fairness.tenure import Allocation
from shapleyprio.store import PendingJobs, Wait
from tests.store.examples import BEGIN, placed_run

if TYPE_CHECKING:
    from shapleyprio.store import AllocatedRun, Store


def test_waits_are_of_runs_that_started_since_each_once(store: Store) -> None:
    def in_partition(placed: AllocatedRun, partition: str) -> AllocatedRun:
        return replace(placed[0], partition=partition), placed[1]

    late, moved = placed_run(3, BEGIN + 50), placed_run(4, BEGIN - 1)
    passed_on = Allocation("physics", "biology", 16, BEGIN + 10, None)
    with store.cluster("c").transaction() as rows:
        rows.runs.put(
            [
                in_partition(placed_run(1, release=BEGIN - 7, owners=("a", "b")), "x"),
                in_partition(placed_run(2, BEGIN - 1), "x"),
                in_partition(late, "y"),
                (moved[0], (*moved[1], passed_on)),
                placed_run(5, BEGIN + 1, organization=""),
                placed_run(6, BEGIN + 1, release=0),
            ]
        )
    with store.cluster("c").reading() as view:
        assert sorted(view.runs.waits(BEGIN)) == [
            Wait("physics", "x", 7),
            Wait("physics", "y", 110),
        ]
        assert view.runs.waits(BEGIN, until=BEGIN + 50) == [Wait("physics", "x", 7)]
    with store.cluster("another").reading() as view:
        assert view.runs.waits(0) == []


def test_the_jobs_that_wait_replace_those_of_the_cycle_before(store: Store) -> None:
    first, second = (
        PendingJobs(organization=name, partition="p", jobs=2, since=BEGIN) for name in ("a", "b")
    )
    with store.cluster("c").transaction() as rows:
        rows.observed.save_pending_jobs([second, first])
    with store.cluster("c").transaction() as rows:
        assert rows.observed.pending_jobs() == [first, second]
        rows.observed.save_pending_jobs([second])
    with store.cluster("c").reading() as view:
        assert view.observed.pending_jobs() == [second]
    with store.cluster("another").reading() as view:
        assert view.observed.pending_jobs() == []
