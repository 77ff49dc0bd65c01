"""A job is planned again exactly when something has changed on which its plan depends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.pushing.managed import PlanBasis, SettledJobs
from shapleyprio.slurm.channels import Claims
from shapleyprio.store import ManagedValue
from tests.daemon.pushing.test_urgency import waiting

if TYPE_CHECKING:
    from collections.abc import Callable

ANN, BEN, TASK = waiting(1, 9), replace(waiting(2, 9), account="biology"), waiting(34, 9)
MANAGED = {"1": ManagedValue(0, (5,))}
BASIS = PlanBasis(
    points={"physics": 5, "biology": 3},
    claims=Claims({"physics": "physics", "biology": "biology"}),
    given=frozenset(),
    least=None,
    managed=MANAGED,
)


def settled() -> SettledJobs:
    """Both jobs have been planned, and have what they should."""
    jobs = SettledJobs()
    assert jobs.others([ANN, BEN], BASIS) == [ANN, BEN]
    jobs.settle([ANN, BEN], [ANN, BEN], set())
    return jobs


def test_jobs_of_which_nothing_changed_are_not_planned_again() -> None:
    jobs, new, changed = settled(), waiting(3, 9), replace(ANN, site_factor=7)
    assert jobs.others([ANN, BEN, new], replace(BASIS, points=dict(BASIS.points))) == [new]
    assert jobs.others([changed, BEN], BASIS) == [changed]


@pytest.mark.parametrize(
    "change",
    [
        lambda basis: replace(basis, claims=Claims({"physics": "biology"})),
        lambda basis: replace(basis, claims=replace(basis.claims, left_out_partitions={"pa"})),
        lambda basis: replace(basis, given=frozenset({5})),
        lambda basis: replace(basis, least=0),
        lambda basis: replace(basis, managed=dict(MANAGED)),
    ],
)
def test_all_are_planned_again_when_it_may_concern_them_all(
    change: Callable[[PlanBasis], PlanBasis],
) -> None:
    assert settled().others([ANN, BEN], change(BASIS)) == [ANN, BEN]


@pytest.mark.parametrize("points", [{"physics": 5, "biology": 4}, {"physics": 5}])
def test_only_jobs_of_organizations_whose_points_changed_are_planned_again(
    points: dict[str, int],
) -> None:
    assert settled().others([ANN, BEN], replace(BASIS, points=points)) == [BEN]


def test_a_job_is_planned_until_nothing_is_left_to_be_written() -> None:
    jobs = settled()
    jobs.settle([ANN, BEN], jobs.others([ANN, BEN], replace(BASIS, least=0)), {"2"})
    assert jobs.others([ANN, BEN], replace(BASIS, least=0)) == [BEN]


def test_a_task_that_inherits_from_its_array_is_planned_every_time() -> None:
    jobs, task = settled(), replace(TASK, array_job_id=33)
    jobs.settle([ANN, BEN, task], jobs.others([ANN, BEN, task], BASIS), set())
    assert jobs.others([ANN, BEN, task], BASIS) == [task]
