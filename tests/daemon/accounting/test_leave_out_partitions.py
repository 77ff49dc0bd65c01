"""Partitions that are left out: their jobs earn nobody anything, and are never pushed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.accounting.ownership import Correction, correct
from shapleyprio.daemon.answering.explain import explain_account, explain_job
from shapleyprio.fairness.tenure import LEFT_OUT
from shapleyprio.replay.logs.assembling import COUNTS_FOR_NOBODY
from shapleyprio.replay.logs.stored import log_of_runs
from tests.daemon.consortium import BIOLOGY, FIRST, NAME, NOW, PHYSICS, Cluster, Service, config

if TYPE_CHECKING:
    from shapleyprio.store import Store

WITHOUT_TESTS = config(fairness={"leave_out_partitions": ["all"]})


@pytest.fixture
def service(slurm: Cluster, store: Store) -> Service:
    """Biology tests on the whole cluster in partition all; jobs 2 to 4 wait, of physics 2 and 3."""
    slurm.fill("biology")
    slurm.submit("physics", processing_time=9)
    slurm.submit("physics", processing_time=9, partition="pa")
    slurm.submit("biology", processing_time=9, partition="pb")
    slurm.wait(10)
    return Service(slurm, store, WITHOUT_TESTS)


def balances(service: Service) -> dict[str, int]:
    return {name: row.contribution - row.utility for name, row in service.standings().items()}


def recount(service: Service, since: int) -> None:
    """As `shapleyprio ownership recount` does, of what is left out alone."""
    left_out = service.config.fairness.leave_out_partitions
    names = service.slurm.layout().partitions
    holders = {name: LEFT_OUT if name in left_out else "" for name in names}
    asked = Correction(
        holders={"partition": holders},
        since=since,
        at=service.slurm.now,
        user="root",
        processors={},
        partitions_of={},
        organizations=["physics", "biology"],
        longest_age=3600,
    )
    correct(service.store.cluster(NAME), asked)


def test_work_in_a_partition_that_is_left_out_earns_nobody_anything(service: Service) -> None:
    for _ in range(2):
        service.run()
        for row in service.standings().values():
            assert (row.contribution, row.utility, row.parts, row.all_parts) == (0, 0, 0, 0)
        service.slurm.wait(1000)


def test_work_of_the_same_account_elsewhere_counts(slurm: Cluster, store: Store) -> None:
    slurm.submit("biology", processors=4, processing_time=10**6, partition="pa")
    slurm.advance(slurm.now)
    slurm.wait(10)
    service = Service(slurm, store, WITHOUT_TESTS)
    service.run()
    assert balances(service) == {"physics": 4 * 55, "biology": -4 * 55}


def test_jobs_in_a_partition_that_is_left_out_are_never_pushed_nor_counted(
    service: Service,
) -> None:
    service.run()
    assert service.slurm.job(2).site_factor == 0
    assert service.pushes(2) == []
    assert service.slurm.job(3).site_factor == FIRST
    assert {name: row.pending for name, row in service.standings().items()} == {
        "physics": 1,
        "biology": 1,
    }


def test_explanations_say_of_each_job_whether_it_counts(service: Service) -> None:
    service.run()
    cluster = service.store.cluster(NAME)
    assert explain_job(cluster, service.slurm, "2").ranked is None
    assert explain_job(cluster, service.slurm, "3").ranked is not None
    counting, left_out = explain_account(cluster, service.slurm, "physics").organizations
    assert (counting.ranked is not None, counting.waiting) == (True, 1)
    assert (left_out.ranked, left_out.waiting) == (None, 1)


def test_what_was_earned_before_a_partition_is_left_out_stays(service: Service) -> None:
    service.restart(config())
    service.run()
    earned = {name: row.all_parts for name, row in service.standings().items()}
    assert service.slurm.job(2).site_factor == FIRST
    service.restart(WITHOUT_TESTS)
    service.slurm.wait(0)
    service.run()
    assert service.slurm.job(2).site_factor == 0  # what stood there before is put back
    service.slurm.wait(500)
    service.run()
    assert earned == {name: row.all_parts for name, row in service.standings().items()}
    assert service.standings()["physics"].contribution == 8 * (55 + 10 * 500)  # ten parts, older


def test_a_partition_that_is_left_out_no_more_counts_from_then_on(service: Service) -> None:
    service.run()
    service.restart(config())
    service.run()
    service.slurm.wait(10)
    service.run()
    assert service.standings()["physics"].contribution == 8 * 55


def test_the_past_can_be_counted_with_and_without_it(service: Service, store: Store) -> None:
    service.restart(config())
    service.run()
    service.restart(WITHOUT_TESTS)
    recount(service, since=0)
    service.run()
    assert balances(service) == {"physics": 0, "biology": 0}
    service.restart(config())
    recount(service, since=NOW + 4)
    service.run()
    afresh = Service(service.slurm, store, name="afresh")
    assert service.standings()["physics"].contribution == 8 * sum(10 - s for s in range(4, 10))
    recount(service, since=0)
    service.run()
    afresh.run()
    expected = {name: row.contribution for name, row in afresh.standings().items()}
    assert {name: row.contribution for name, row in service.standings().items()} == expected


def test_replays_of_the_store_leave_its_jobs_out(slurm: Cluster, store: Store) -> None:
    slurm.fill("biology", seconds=10)
    slurm.wait(10)
    slurm.submit("biology", processing_time=10, partition="pb")
    slurm.advance(slurm.now)
    slurm.wait(20)
    service = Service(slurm, store, WITHOUT_TESTS)
    service.run()
    with store.cluster(NAME).reading() as view:
        log = log_of_runs("store", view.runs.runs_alive_after(NOW - 1))
    assert len(log.job) == 1
    assert log.left_out[COUNTS_FOR_NOBODY] == 1


def test_check_says_what_slurm_does_not_have(service: Service) -> None:
    misspelled = config(fairness={"leave_out_partitions": ["al"]})
    findings = service.findings(misspelled)
    assert findings["fairness.leave_out_partitions"].message == "Slurm has no partition al"
    assert findings["fairness.leave_out_partitions"].remedy == "did you mean 'all'?"


def test_check_says_where_the_channel_cannot_leave_jobs_alone(service: Service) -> None:
    by_qos = config(
        PHYSICS, BIOLOGY, push={"channel": "qos"}, fairness={"leave_out_partitions": ["all"]}
    )
    finding = service.findings(by_qos)["fairness.leave_out_partitions"]
    assert "the points of their QOS" in finding.message
    assert "fairness.leave_out_partitions" not in service.findings(WITHOUT_TESTS)
