"""Accounts that are left out: their jobs earn nobody anything, and are never pushed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.answering.explain import explain_job
from shapleyprio.replay.logs.assembling import COUNTS_FOR_NOBODY
from shapleyprio.replay.logs.stored import log_of_runs
from tests.daemon.consortium import FIRST, NAME, NOW, Cluster, Service, config

if TYPE_CHECKING:
    from shapleyprio.store import Store

WITHOUT_GUESTS = config(fairness={"leave_out_accounts": ["guest"]})


@pytest.fixture
def service(slurm: Cluster, store: Store) -> Service:
    """Guests, who are left out, use the whole cluster; a job of theirs and one of physics wait."""
    slurm.fill("guest")
    slurm.submit("guest", processing_time=9)
    slurm.submit("physics", processing_time=9)
    slurm.wait(10)
    return Service(slurm, store, WITHOUT_GUESTS)


def test_work_of_an_account_that_is_left_out_earns_nobody_anything(service: Service) -> None:
    service.run()
    for row in service.standings().values():
        assert (row.contribution, row.utility, row.parts, row.all_parts) == (0, 0, 0, 0)
    service.slurm.wait(1000)
    service.run()
    assert {row.contribution for row in service.standings().values()} == {0}


def test_without_the_key_it_counts_as_work_of_nobody(service: Service) -> None:
    service.restart(config())
    service.run()
    for row in service.standings().values():
        assert (row.contribution, row.utility, row.parts) == (0, 0, 0)
        assert row.all_parts == 12 * 10


def test_jobs_of_an_account_that_is_left_out_are_never_pushed(service: Service) -> None:
    service.run()
    assert service.slurm.job(2).site_factor == 0
    assert service.pushes(2) == []
    assert service.slurm.job(3).site_factor == FIRST
    explained = explain_job(service.store.cluster(NAME), service.slurm, "2")
    assert explained.ranked is None


def test_points_that_jobs_had_before_are_put_back(service: Service) -> None:
    claimed = {"name": "guests", "accounts": ["guest"]}
    service.restart(config({"name": "physics", "accounts": ["physics"]}, claimed))
    service.run()
    assert service.slurm.job(2).site_factor
    service.restart(WITHOUT_GUESTS)
    service.run()
    assert service.slurm.job(2).site_factor == 0


def test_what_was_earned_before_an_account_is_left_out_stays(service: Service) -> None:
    service.restart(config())
    service.run()
    earned = {name: row.all_parts for name, row in service.standings().items()}
    service.restart(WITHOUT_GUESTS)
    service.slurm.wait(0)
    service.run()
    service.slurm.wait(500)
    service.run()
    assert earned == {name: row.all_parts for name, row in service.standings().items()}
    assert set(earned.values()) == {12 * 10}


def test_an_account_that_is_left_out_no_more_counts_from_then_on(service: Service) -> None:
    service.run()
    service.restart(config())
    service.run()
    service.slurm.wait(10)
    service.run()
    assert service.standings()["physics"].all_parts == 12 * 10


def test_replays_of_the_store_leave_its_jobs_out(slurm: Cluster, store: Store) -> None:
    slurm.fill("guest", seconds=10)
    slurm.wait(10)
    slurm.fill("biology", seconds=10)
    slurm.wait(20)
    service = Service(slurm, store, WITHOUT_GUESTS)
    service.run()
    with store.cluster(NAME).reading() as view:
        log = log_of_runs("store", view.runs.runs_alive_after(NOW - 1))
    assert len(log.job) == 1
    assert log.left_out[COUNTS_FOR_NOBODY] == 1


def test_check_does_not_complain_of_it_but_of_one_that_slurm_does_not_have(
    service: Service,
) -> None:
    assert not any("guest" in subject for subject in service.findings(WITHOUT_GUESTS))
    misspelled = config(fairness={"leave_out_accounts": ["gust"]})
    findings = service.findings(misspelled)
    assert findings["fairness.leave_out_accounts"].message == "Slurm has no account gust"
    assert findings["fairness.leave_out_accounts"].remedy == "did you mean 'guest'?"
