"""A daemon with a journal goes on while the store is away, and all of it is on record later."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from shapleyprio.daemon.pushing.cut_off import AWAY, journal_of
from shapleyprio.daemon.pushing.lease import Lease, LeaseHeldError
from shapleyprio.daemon.pushing.rollback import roll_back
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.slurm.port import SlurmUnavailableError
from shapleyprio.store import Journal, PushState, Store, StoreError, StoreUnreachableError
from tests.daemon.consortium import FIRST, NAME, Cluster, Crash, config
from tests.daemon.faults.cluster import Moments
from tests.daemon.faults.stores import FaultyStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shapleyprio.store import ManagedValue, Push
    from tests.store.servers import Databases

LENGTH = 10
CHANNELS = ["site_factor", "nice"]
ASKED = {"site_factor": 0, "nice": 7}
"""Channel -> what stands at a job as its user submits it."""

BIOLOGY = 100_000
"""Points of biology, which has used the whole cluster."""


def written(channel: str, points: int) -> int:
    """What stands at a job of an organization with these points."""
    return points if channel == "site_factor" else ASKED["nice"] - points


@dataclass
class Journaled:
    """A daemon without its schedule, with a journal and a store that can be away.

    Biology uses the whole cluster, so physics comes first.

    Attributes:
        store: as the daemon has opened it.
    """

    faulty: FaultyStore
    path: Path
    channel: str
    slurm: Cluster = field(default_factory=Cluster)
    limits: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.slurm.fill("biology")
        self.slurm.wait(10)
        self._opened = ExitStack()
        self.start()

    def start(self) -> None:
        """Starts its process, and has it take the lease."""
        self.config = config(
            push={"channel": self.channel, **self.limits}, store={"journal": str(self.path)}
        )
        journal = self._opened.enter_context(journal_of(self.config, create=True))
        self.store: Store = self.faulty.open()
        self.lease = Lease(
            self.store.cluster(NAME), seconds=LENGTH, journal=journal, clock=lambda: self.slurm.now
        )
        assert self.lease.try_to_take()
        self.cycle = Cycle(
            self.config,
            self.slurm,
            self.lease.store,
            clock=lambda: self.slurm.now,
            journal=journal,
        )

    def die(self) -> None:
        """Ends its process by SIGKILL, as far as the journal sees it."""
        self._opened.close()

    def submit(self, account: str, **options: Any) -> int:
        nice = ASKED["nice"] if self.channel == "nice" else 0
        job = self.slurm.submit(account, processing_time=9, nice=nice, **options)
        self.slurm.wait(1)
        return job

    @contextmanager
    def away(self) -> Iterator[None]:
        """The store is away, as a cycle finds out."""
        with self.faulty.broken("read only"):
            with pytest.raises(StoreError):
                self.cycle.run()
            yield

    def value(self, job: int) -> int:
        value = getattr(self.slurm.job(job), self.channel)
        assert isinstance(value, int)
        return value

    def pushes(self, job: int) -> list[Push]:
        """What was written to a job, the oldest first."""
        with self.store.cluster(NAME).reading() as view:
            return view.pushes.latest(key=str(job))[::-1]

    def managed(self, job: int) -> ManagedValue | None:
        with self.store.cluster(NAME).reading() as view:
            return view.pushes.managed_values(self.channel).get(str(job))


@pytest.fixture
def faulty(databases: Databases, database: str) -> Iterator[FaultyStore]:
    with databases.made(database) as url:
        store = FaultyStore(database, url, Moments())
        yield store
        store.close()


@pytest.fixture(params=CHANNELS)
def daemon(
    request: pytest.FixtureRequest, faulty: FaultyStore, tmp_path: Path
) -> Iterator[Journaled]:
    daemon = Journaled(faulty, tmp_path / "journal", request.param)
    yield daemon
    daemon.die()


# -- while the store is away


def test_new_jobs_get_the_points_that_were_known_last(daemon: Journaled) -> None:
    before = daemon.submit("physics")
    daemon.cycle.run()
    with daemon.away():
        first, last, guest = (daemon.submit(name) for name in ("physics", "biology", "guest"))
        assert daemon.cycle.go_on() == 2
        daemon.slurm.writes.clear()
        assert daemon.cycle.go_on() == 0
        assert daemon.slurm.writes == []
    assert daemon.value(before) == daemon.value(first) == written(daemon.channel, FIRST)
    assert daemon.value(last) == written(daemon.channel, BIOLOGY)
    assert daemon.value(guest) == ASKED[daemon.channel]


def test_what_was_written_is_on_record_and_put_back_when_the_store_is_there_again(
    daemon: Journaled,
) -> None:
    daemon.cycle.run()
    with daemon.away():
        job = daemon.submit("physics")
        daemon.cycle.go_on()
    daemon.slurm.writes.clear()
    report = daemon.cycle.run()
    assert daemon.slurm.writes == []
    assert (report.plan.missed, report.plan.pushes) == (0, [])
    (push,) = daemon.pushes(job)
    assert (push.state, push.organization, push.cycle) == (PushState.APPLIED, "physics", 1)
    assert (push.original, push.old) == (ASKED[daemon.channel],) * 2
    assert push.new == written(daemon.channel, FIRST)
    assert push.reason.endswith(AWAY)
    assert roll_back(daemon.lease.store, daemon.slurm).applied == 1
    assert daemon.value(job) == ASKED[daemon.channel]


def test_what_the_daemon_knows_a_job_by_is_not_taken_for_its_users_wish(
    daemon: Journaled,
) -> None:
    job = daemon.submit("physics", array=3)
    running = daemon.submit("physics")
    daemon.cycle.run()
    daemon.slurm.cancel(1)
    daemon.slurm.wait(1)  # one of them starts
    daemon.cycle.run()
    with daemon.away():
        for one in (job, running):
            daemon.slurm.requeue(one)
        daemon.slurm.fill("biology")
        daemon.slurm.wait(1)
        assert daemon.cycle.go_on() == 0
    assert daemon.cycle.run().pushed.refused == 0
    roll_back(daemon.lease.store, daemon.slurm)
    assert {getattr(one, daemon.channel) for one in daemon.slurm.jobs()} <= {
        ASKED[daemon.channel],
        0,  # of the job that fills the cluster
    }


def test_nothing_is_written_before_a_cycle_has_found_out_what(daemon: Journaled) -> None:
    with daemon.away():
        daemon.submit("physics")
        assert daemon.cycle.go_on() == 0
    assert daemon.slurm.writes == []


def test_no_more_is_written_at_a_time_than_a_cycle_may(faulty: FaultyStore, tmp_path: Path) -> None:
    daemon = Journaled(faulty, tmp_path / "journal", "nice", limits={"most_writes": 2})
    daemon.cycle.run()
    with daemon.away():
        jobs = [daemon.submit("physics") for _ in range(3)]
        assert [daemon.cycle.go_on() for _ in range(3)] == [2, 1, 0]
    assert {daemon.value(job) for job in jobs} == {written("nice", FIRST)}
    daemon.die()


def test_what_slurm_did_not_take_is_written_the_next_time_and_noted_once(
    daemon: Journaled,
) -> None:
    daemon.cycle.run()
    with daemon.away():
        job = daemon.submit("physics")
        daemon.slurm.before_write = lambda: daemon.slurm.take_down("slurmctld")
        with pytest.raises(SlurmUnavailableError):
            daemon.cycle.go_on()
        daemon.slurm.bring_up("slurmctld")
        assert daemon.cycle.go_on() == 1
    daemon.cycle.run()
    assert [push.state for push in daemon.pushes(job)] == [PushState.APPLIED]


def test_what_slurm_refused_is_written_the_next_time(
    daemon: Journaled, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.cycle.run()
    with daemon.away():
        job = daemon.submit("physics")
        with monkeypatch.context() as patch:
            patch.setattr(daemon.slurm, "write", lambda _, values, __: dict.fromkeys(values, "no"))
            assert daemon.cycle.go_on() == 0
        assert daemon.cycle.go_on() == 1
    assert daemon.value(job) == written(daemon.channel, FIRST)


def test_nothing_is_written_that_the_journal_cannot_note(daemon: Journaled) -> None:
    daemon.cycle.run()
    with daemon.away():
        job = daemon.submit("physics")
        daemon.die()
        with pytest.raises(StoreError, match=r"journal \(store\.journal\)"):
            daemon.cycle.go_on()
    assert daemon.value(job) == ASKED[daemon.channel]


# -- a process that is killed


@pytest.mark.parametrize("moment", ["before_write", "after_write"])
def test_who_is_killed_while_it_writes_leaves_a_way_back(daemon: Journaled, moment: str) -> None:
    daemon.cycle.run()
    with daemon.away():
        job = daemon.submit("physics")
        daemon.slurm.die(moment)
        with pytest.raises(Crash):
            daemon.cycle.go_on()
        daemon.die()
    daemon.start()
    daemon.cycle.run()
    assert daemon.value(job) == written(daemon.channel, FIRST)
    managed = daemon.managed(job)
    assert managed is not None
    assert managed.original == ASKED[daemon.channel]
    roll_back(daemon.lease.store, daemon.slurm)
    assert daemon.value(job) == ASKED[daemon.channel]


def test_who_is_killed_before_the_journal_is_emptied_has_nothing_twice(
    daemon: Journaled, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.cycle.run()
    with daemon.away():
        job = daemon.submit("physics")
        daemon.cycle.go_on()

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "forget", crash)
        with pytest.raises(Crash):
            daemon.cycle.run()
    daemon.die()
    daemon.start()
    for _ in range(2):
        daemon.cycle.run()
    assert [push.state for push in daemon.pushes(job)] == [PushState.APPLIED]


# -- who may take the lease


def test_nobody_takes_over_from_a_daemon_with_a_journal_that_shows_no_life(
    daemon: Journaled,
) -> None:
    def rival(*, take_over: bool = False) -> Lease:
        rows = daemon.store.cluster(NAME)
        clock = iter(range(0, 10_000, LENGTH + 1)).__next__
        return Lease(rows, seconds=LENGTH, take_over=take_over, clock=clock)

    standby = rival()
    assert not any(standby.try_to_take() for _ in range(4))
    assert daemon.lease.leads
    with pytest.raises(LeaseHeldError, match=rf"process {os.getpid()} on .* --take-over"):
        rival().take()
    rival(take_over=True).take()
    with pytest.raises(LeaseHeldError):
        daemon.cycle.run()
    assert not daemon.lease.leads


def test_who_has_the_journal_of_a_killed_daemon_takes_over_at_once(daemon: Journaled) -> None:
    daemon.die()
    for _ in range(2):
        daemon.start()  # at the same second
        daemon.die()
    with daemon.store.cluster(NAME).reading() as view:
        lease = view.lease.read()
    assert lease is not None
    assert (lease.token, lease.has_journal) == (3, True)


def test_a_standby_takes_over_from_a_daemon_with_a_journal_that_stops(daemon: Journaled) -> None:
    daemon.lease.release()
    standby = Lease(daemon.store.cluster(NAME), seconds=LENGTH)
    assert standby.try_to_take()
    with daemon.store.cluster(NAME).reading() as view:
        lease = view.lease.read()
    assert lease is not None
    assert not lease.has_journal


def test_one_process_at_a_time_has_the_journal(daemon: Journaled) -> None:
    with (
        pytest.raises(LeaseHeldError, match=r"another process of this host has /.*journal"),
        journal_of(daemon.config, create=True),
    ):
        raise AssertionError


def test_a_journal_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "none" / "journal"
    with (
        pytest.raises(StoreUnreachableError, match=rf"^store\.journal: {path}: No such file"),
        journal_of(config(store={"journal": str(path)}), create=True),
    ):
        raise AssertionError
    with journal_of(config(store={"journal": str(path)}), create=False) as journal:
        assert journal is None
