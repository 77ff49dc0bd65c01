"""Why a job waits where it waits, in numbers and in words."""

from __future__ import annotations

import json

import pytest

from shapleyprio.service.explain import Explanation, UnknownJobError, explain
from shapleyprio.store import Store
from tests.service.consortium import FIRST, LAST, NAME, Cluster, Service, config


@pytest.fixture
def steered(slurm: Cluster, store: Store) -> Service:
    """Biology uses the whole cluster; jobs 2 to 5 wait, 5 is an array."""
    slurm.fill("biology")
    for account in ("physics", "biology", "guest"):
        slurm.submit(account, nice=3, processing_time=9)
    slurm.submit("biology", array=2, processing_time=9)
    slurm.wait(10)
    service = Service(slurm, store)
    service.run()
    return service


def explained(service: Service, label: str, influence: int | None = None) -> Explanation:
    return explain(service.store, NAME, service.slurm, label, influence=influence)


def test_the_first_organizations_job(steered: Service) -> None:
    told = explained(steered, "2")
    assert (told.organization, told.place, told.organizations) == ("physics", 1, 2)
    assert (told.contribution, told.utility, told.balance) == (440, 0, 440)
    assert (told.points, told.ahead) == (FIRST, 0)
    assert [(push.old, push.new) for push in told.pushes] == [(0, FIRST)]
    text = " ".join(told.sentences())
    assert "physics contributed 440 part-seconds of worth and used 0: it is owed 440." in text
    assert f"That is place 1 of 2 and gives its jobs {FIRST} points." in text
    assert "Its nice of 3 takes as many points away from it." in text


def test_the_last_organizations_array(steered: Service) -> None:
    told = explained(steered, "5_[0-1]")
    assert told == explained(steered, "5")
    assert (told.organization, told.place, told.points) == ("biology", 2, LAST)
    assert "it owes 440" in " ".join(told.sentences())


def test_nobodys_job(steered: Service) -> None:
    told = explained(steered, "4")
    assert (told.organization, told.place, told.points, told.pushes) == ("", None, None, [])
    assert told.ahead == 3
    assert "No organization claims its account" in " ".join(told.sentences())


def test_a_held_job(steered: Service) -> None:
    steered.slurm.hold(2)
    assert "It is held" in " ".join(explained(steered, "2").sentences())


def test_strict_order_and_influence(steered: Service) -> None:
    assert "The order of organizations is strict" in " ".join(explained(steered, "2").sentences())
    weighed = explained(steered, "2", influence=500)
    assert "weighs 500 points" in " ".join(weighed.sentences())
    assert weighed.as_json()["influence"] == 500


@pytest.mark.parametrize("label", ["1", "99", "5_0", "nonsense"])
def test_a_job_that_does_not_wait(steered: Service, label: str) -> None:
    with pytest.raises(UnknownJobError, match=f"no job {label} waits; see `squeue -j {label}`"):
        explained(steered, label)


def test_a_job_before_the_first_cycle(service: Service) -> None:
    service.slurm.fill("guest")
    service.slurm.submit("physics", processing_time=9)
    told = explained(service, "2")
    assert (told.place, told.points) == (None, None)


def test_an_account_that_changed_hands(steered: Service) -> None:
    physics = {"name": "physics", "accounts": ["biology"], "partitions": ["pa"]}
    biology = {"name": "biology", "accounts": ["physics"], "partitions": ["pb"]}
    steered.restart(config(physics, biology))
    steered.run()
    assert explained(steered, "2").organization == "biology"


def test_as_json(steered: Service) -> None:
    told = json.loads(json.dumps(explained(steered, "2").as_json()))
    assert told.keys() == {
        *("job", "organization", "place", "organizations", "contribution", "utility", "balance"),
        *("points", "ahead", "influence", "t", "pushes", "sentences"),
    }
    assert told["influence"] == "strict"
    assert told["job"]["job_id"] == 2
    assert told["pushes"] == [
        {"cycle": 1, "at": steered.slurm.now, "old": 0, "new": FIRST, "state": "applied"}
    ]
    assert json.loads(json.dumps(explained(steered, "4").as_json()))["organization"] is None
