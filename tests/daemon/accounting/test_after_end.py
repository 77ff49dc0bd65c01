"""Work after the end of jobs: asked for once, when Slurm knows it, and never in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.accounting import after_end
from shapleyprio.daemon.accounting.after_end import KNOWN_AFTER_SECONDS
from shapleyprio.slurm.port import SlurmUnavailableError
from tests.daemon.consortium import NAME, Cluster, Service, config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shapleyprio.fairness.runs import Run, RunKey
    from shapleyprio.store import Store, UserAfterEnd

KILL_WAIT = 30
KNOWN = KILL_WAIT + KNOWN_AFTER_SECONDS


class Asked(Cluster):
    """A cluster that remembers of how many runs it was asked.

    Attributes:
        asked: jobs, question by question.
        fails: whether the next question fails.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[int]] = []
        self.fails = False

    def last_work(self, runs: Sequence[Run]) -> Mapping[RunKey, int]:
        if self.fails:
            self.fails = False
            raise SlurmUnavailableError("slurmdbd does not answer")
        self.asked.append([run.key.job_id for run in runs])
        return super().last_work(runs)


@pytest.fixture
def slurm() -> Asked:
    return Asked()


@pytest.fixture
def service(slurm: Asked, store: Store) -> Service:
    service = Service(slurm, store, config())
    service.run()
    return service


def found(service: Service) -> list[UserAfterEnd]:
    with service.store.cluster(NAME).reading() as view:
        return view.runs.users_after_end(0, 2**40, 9)


def ends_after(slurm: Asked, seconds: int, account: str = "physics") -> int:
    """A job of two processors that ends in 10 s and goes on for some seconds more."""
    job = slurm.submit(account, processing_time=10, processors=2)
    slurm.works_on[job] = seconds
    return job


def test_what_a_job_executed_after_its_end_is_counted_and_does_not_count(
    slurm: Asked, service: Service
) -> None:
    job = ends_after(slurm, KILL_WAIT)
    slurm.wait(10 + KNOWN - 1)
    assert service.run().after_end == {}
    assert slurm.asked == []
    slurm.wait(1)
    report = service.run()
    assert slurm.asked == [[job]]
    assert report.after_end == {"physics": 2 * KILL_WAIT}
    (one,) = found(service)
    assert (one.organization, one.jobs, one.processor_seconds) == ("physics", 1, 2 * KILL_WAIT)
    with service.store.cluster(NAME).reading() as view:
        ((run, _),) = view.runs.all_runs()
    assert run.end == run.begin + 10
    slurm.wait(3600)
    assert service.run().after_end == {}
    assert slurm.asked == [[job]]


def test_a_job_that_is_only_cleaned_up_is_left_out_and_a_guests_is_nobodys(
    slurm: Asked, service: Service
) -> None:
    ends_after(slurm, 2)
    ends_after(slurm, 3, account="guest")
    slurm.wait(10 + KNOWN)
    assert service.run().after_end == {"": 2 * 3}


def test_the_work_of_accounts_and_partitions_that_are_left_out_is_not_counted(
    slurm: Asked, store: Store
) -> None:
    left_out = {"leave_out_accounts": ["guest"], "leave_out_partitions": ["pb"]}
    service = Service(slurm, store, config(fairness=left_out))
    service.run()
    ends_after(slurm, 9, account="guest")
    slurm.works_on[slurm.submit("biology", processing_time=10, partition="pb")] = 9
    slurm.works_on[slurm.submit("biology", processing_time=10, partition="pa")] = 9
    slurm.wait(10 + KNOWN)
    assert service.run().after_end == {"biology": 9}


def test_a_longer_kill_wait_is_waited_for(slurm: Asked, service: Service) -> None:
    slurm.layout_changes["kill_wait_seconds"] = 300
    service.restart()
    ends_after(slurm, 300)
    slurm.wait(10 + KNOWN)
    assert service.run().after_end == {}
    slurm.wait(270)
    assert service.run().after_end == {"physics": 600}


def test_of_many_runs_some_are_left_to_the_next_cycles_and_none_is_forgotten(
    slurm: Asked, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_end, "MOST_ASKED", 3)
    for _ in range(2):
        ends_after(slurm, 9)
        ends_after(slurm, 9)
        slurm.wait(1)
    slurm.wait(10 + KNOWN)
    assert [service.run().after_end for _ in range(3)] == [{"physics": 36}, {"physics": 36}, {}]
    assert [len(jobs) for jobs in slurm.asked] == [2, 2]


def test_more_runs_than_are_asked_for_at_once_may_end_in_one_second(
    slurm: Asked, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_end, "MOST_ASKED", 2)
    jobs = [ends_after(slurm, 9) for _ in range(3)]
    slurm.wait(10 + KNOWN)
    assert service.run().after_end == {"physics": 3 * 18}
    assert slurm.asked == [jobs]


def test_users_are_shown_for_a_day(slurm: Asked, service: Service) -> None:
    ends_after(slurm, 9)
    slurm.wait(10 + KNOWN)
    (one,) = service.run().users_after_end
    assert (one.user, one.organization, one.processor_seconds) == ("user", "physics", 18)
    slurm.wait(86_400 - 60)
    assert service.run().users_after_end == [one]
    slurm.wait(60)
    assert service.run().users_after_end == []


def test_where_slurm_does_not_answer_priorities_are_written_and_the_next_cycle_asks(
    slurm: Asked, service: Service
) -> None:
    ends_after(slurm, 9)
    slurm.wait(10 + KNOWN)
    slurm.fill("guest")
    waiting = slurm.submit("physics", processing_time=9)
    slurm.fails = True
    assert service.run().after_end == {}
    assert slurm.job(waiting).site_factor
    assert service.run().after_end == {"physics": 18}
