"""Estimates come back exactly, and go with the history they belong to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shapleyprio.fairness.worth import Trajectory
from shapleyprio.store import EstimateRow, WaitingWork
from tests.store.examples import BEGIN, cycle

if TYPE_CHECKING:
    from shapleyprio.store import Store

LARGE = 10**30
ROW = EstimateRow(
    t=BEGIN,
    organization="physics",
    begin=BEGIN - 100,
    value=LARGE,
    rate=-LARGE,
    acceleration=7,
    denominator=3_628_800,
    error=5,
    utility=LARGE + 1,
    alone=0,
    without=LARGE + 2,
    parts=9,
    coalitions=1024,
)


WAITING = [
    WaitingWork(organization="x", account="a", user=user, jobs=jobs, processor_seconds=LARGE * jobs)
    for user, jobs in (("zoe", 9), ("ann", 2), ("x" * 300, 1), ("x" * 299, 1))
]


def test_the_waiting_work_of_the_newest_estimate_comes_back_in_its_order(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.estimates.save_estimate([ROW], WAITING[::-1])
        rows.estimates.save_estimate([ROW], WAITING)
        found = rows.estimates.waiting_work()
    assert found == [replace(row, user=row.user[:255]) for row in WAITING]
    with store.cluster("another").reading() as view:
        assert view.estimates.waiting_work() == []


def test_the_newest_estimate_comes_back_exactly(store: Store) -> None:
    later = [replace(ROW, t=BEGIN + 30, organization=name) for name in ("biology", "physics")]
    with store.cluster("c").transaction() as rows:
        assert rows.estimates.latest_estimate() == []
        rows.estimates.save_estimate([ROW], [])
        rows.estimates.save_estimate(later, [])
        rows.estimates.save_estimate(
            later, WAITING
        )  # found again by a daemon that was killed meanwhile
        assert rows.estimates.latest_estimate() == later
        assert rows.estimates.latest_estimate(until=BEGIN + 29) == [ROW]
        assert rows.estimates.latest_estimate(until=BEGIN - 1) == []
    with store.cluster("another").reading() as view:
        assert view.estimates.latest_estimate() == []
    assert ROW.contribution == Trajectory(LARGE, -LARGE, 7, 3_628_800)


def test_the_first_seed_of_a_cluster_stays(store: Store) -> None:
    largest = 2**63 - 1
    with store.cluster("c").transaction() as rows:
        assert rows.estimates.sampling_seed() is None
        assert rows.estimates.keep_sampling_seed(largest) == largest
    with store.cluster("c").transaction() as rows:
        assert rows.estimates.keep_sampling_seed(7) == largest
        assert rows.estimates.sampling_seed() == largest
    with store.cluster("another").transaction() as rows:
        assert rows.estimates.keep_sampling_seed(7) == 7


def test_estimates_are_pruned_with_the_cycles_that_ranked_by_them(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.history.save_cycle(replace(cycle(1), estimated_at=BEGIN))
        rows.estimates.save_estimate([ROW, replace(ROW, t=BEGIN + 30)], [])
        rows.prune_history(BEGIN + 1, pushes_before=0)
        assert rows.estimates.latest_estimate(until=BEGIN) == []
        assert rows.estimates.latest_estimate() == [replace(ROW, t=BEGIN + 30)]
        (kept,) = rows.history.cycles()
        assert kept.estimated_at == BEGIN
