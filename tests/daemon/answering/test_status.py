"""What people see of a cluster after its last cycle."""

from __future__ import annotations

import json

import pytest

from shapleyprio.daemon.answering.status import OrganizationStatus, organization_rows, read_status
from shapleyprio.slurm.port import SlurmUnavailableError
from shapleyprio.store import StandingRow, Store, StoreError
from tests.daemon.consortium import FIRST, LAST, NAME, NOW, Cluster, Service


@pytest.fixture
def steered(slurm: Cluster, store: Store) -> Service:
    """Biology has used the whole cluster for ten seconds, and a job of physics waits."""
    slurm.fill("biology")
    slurm.submit("physics", processing_time=9)
    slurm.wait(10)
    service = Service(slurm, store)
    service.run()
    return service


def test_the_first_to_be_served_comes_first(steered: Service) -> None:
    status = read_status(steered.store.cluster(NAME))
    assert status.rows == (
        OrganizationStatus(
            organization="physics",
            share=8 / 12,
            contribution=8 * 55,
            utility=0,
            contribution_share=8 / 12,
            utility_share=0,
            balance=8 * 55,
            balance_per_part=8 * 55 / 120,
            score=8 * 55,
            reason="balance 440",
            priority=FIRST,
            pending=1,
            running=0,
        ),
        OrganizationStatus(
            organization="biology",
            share=4 / 12,
            contribution=4 * 55,
            utility=12 * 55,
            contribution_share=4 / 12,
            utility_share=1,
            balance=-8 * 55,
            balance_per_part=-8 * 55 / 120,
            score=-8 * 55,
            reason="balance -440",
            priority=LAST,
            pending=0,
            running=1,
        ),
    )
    assert (status.cluster, status.cycle.t, status.failure) == (NAME, NOW + 10, None)


def test_a_cluster_that_never_had_a_good_cycle_says_why(service: Service) -> None:
    with pytest.raises(StoreError, match=r"no cycle on cluster c1 has succeeded yet$"):
        read_status(service.store.cluster(NAME))
    service.slurm.take_down("slurmctld")
    with pytest.raises(SlurmUnavailableError):
        service.run()
    with pytest.raises(StoreError, match="succeeded yet: slurmctld does not answer"):
        read_status(service.store.cluster(NAME))


def test_the_last_good_standings_stay_beside_a_later_failure(steered: Service) -> None:
    steered.slurm.take_down("slurmdbd")
    with pytest.raises(SlurmUnavailableError):
        steered.run()
    status = read_status(steered.store.cluster(NAME))
    assert status.failure is not None
    assert (status.cycle.number, status.failure.number) == (1, 2)
    assert status.failure.message == "slurmdbd does not answer"
    steered.slurm.bring_up("slurmdbd")
    steered.run()
    assert read_status(steered.store.cluster(NAME)).failure is None


def test_as_json(steered: Service) -> None:
    output = json.loads(json.dumps(read_status(steered.store.cluster(NAME)).as_json()))
    assert output.keys() == {
        *("cluster", "t", "cycle", "outcome", "slurm_version", "rule", "failure", "organizations"),
        *("adapter", "estimated_at", "coalitions", "postponed", "quarantined", "table"),
        *("of_unknown_accounts", "pool", "steering", "drift", "waits", "by_hand", "forecasts"),
    }
    assert output["failure"] is None
    assert output["outcome"] == "ok"
    assert output["organizations"][0] == {
        "organization": "physics",
        "share": 8 / 12,
        "contribution": 440,
        "utility": 0,
        "contribution_share": 8 / 12,
        "utility_share": 0,
        "balance": 440,
        "balance_per_part": 440 / 120,
        "score": 440,
        "reason": "balance 440",
        "priority": FIRST,
        "pending": 1,
        "running": 0,
        "parent": None,
        "drift_seconds": None,
        "value": None,
        "waiting_work": None,
    }


def test_a_consortium_without_nodes_and_work_has_no_shares() -> None:
    row = StandingRow(
        cycle=1,
        organization="physics",
        t=NOW,
        contribution=0,
        utility=0,
        score=0,
        parts=0,
        priority=1,
        pending=0,
        running=0,
        processors=0,
    )
    (output,) = organization_rows([row])
    assert (output.share, output.balance_per_part) == (0, None)
    assert (output.contribution_share, output.utility_share) == (None, None)
