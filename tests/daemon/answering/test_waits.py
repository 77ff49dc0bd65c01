"""How long the jobs of organizations wait, as status, page and JSON have it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shapleyprio.daemon.answering.status import read_status
from shapleyprio.daemon.ranking.demand import CountingJobs
from shapleyprio.daemon.ranking.observation import Observation
from shapleyprio.daemon.ranking.observing import pending_jobs_of
from shapleyprio.fairness.tenure import Tenure, Tenures
from shapleyprio.store import PendingJobs
from tests.daemon.consortium import BIOLOGY, NAME, NOW, PHYSICS, Cluster, Service, config

if TYPE_CHECKING:
    from typing import Any

    from shapleyprio.store import Store


def waits(service: Service) -> dict[tuple[str, str], dict[str, Any]]:
    rows = read_status(service.store.cluster(NAME)).as_json()["waits"]
    return {(row.pop("organization"), row.pop("partition")): row for row in rows}


def test_who_could_start_waits_and_who_is_held_does_not(service: Service) -> None:
    slurm = service.slurm
    slurm.fill("biology")
    held = slurm.submit("physics", partition="pb", processing_time=9)
    slurm.hold(held)
    slurm.submit("physics", partition="pa", processing_time=9)
    slurm.submit("guest", partition="pa", processing_time=9)
    slurm.wait(30)
    slurm.submit("physics", partition="pb", processing_time=9)
    slurm.wait(60)
    service.run()
    found = waits(service)
    pending = {place: (row["pending"], row["oldest"]) for place, row in found.items()}
    assert pending == {
        ("biology", "all"): (0, None),
        ("physics", "pa"): (1, 90),
        ("physics", "pb"): (1, 60),
    }
    assert found["physics", "pa"]["median"] is None


def test_a_job_that_names_several_partitions_waits_in_each(service: Service) -> None:
    slurm = service.slurm
    slurm.fill("biology")
    first, second = (slurm.submit("physics", partition="pa", processing_time=9) for _ in range(2))
    tenures = Tenures([Tenure("account", "physics", "physics", since=None, until=None)])
    observation = Observation(
        pending=[replace(slurm.job(first), partition="pa,pb"), slurm.job(second)],
        running={},
        nodes=[],
        partitions_of={},
        tres="cpu",
        tenures=tenures,
        t=NOW,
    )
    places = {
        ("physics", "pa,pb"): CountingJobs(jobs=1, processors=1, since=NOW),
        ("physics", "pa"): CountingJobs(jobs=1, processors=1, since=NOW - 5),
    }
    assert pending_jobs_of(observation, places) == [
        PendingJobs(organization="physics", partition="pa", jobs=2, since=NOW - 5),
        PendingJobs(organization="physics", partition="pb", jobs=1, since=NOW),
    ]


def test_waits_are_those_of_the_last_day(service: Service) -> None:
    slurm = service.slurm
    slurm.fill("biology", 1000)
    for _ in range(10):
        slurm.submit("physics", partition="pb", processors=4, processing_time=100)
    slurm.wait(1000)
    service.run()
    slurm.wait(90_000)
    assert len(waits(service)) == 2
    slurm.fill("biology", 50)
    for processing_time in (100, 200, 300):
        slurm.submit("physics", partition="pb", processors=4, processing_time=processing_time)
    slurm.wait(600)
    service.run()
    found = waits(service)["physics", "pb"]
    assert {name: found[name] for name in ("started", "median", "ninth_decile", "longest")} == {
        "started": 3,
        "median": 150,
        "ninth_decile": 350,
        "longest": 350,
    }


def test_jobs_that_are_left_out_have_no_waits(store: Store) -> None:
    left_out = config(PHYSICS, BIOLOGY, fairness={"leave_out_partitions": ["pb"]})
    service = Service(Cluster(), store, left_out)
    slurm = service.slurm
    slurm.submit("physics", partition="pb", processors=4, processing_time=1000)
    slurm.wait(10)
    slurm.submit("physics", partition="pb", processors=4, processing_time=9)
    slurm.wait(10)
    service.run()
    assert waits(service) == {}
