"""One process at a time steers a cluster, and no clock that somebody sets decides which."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.pushing.lease import Lease, LeaseHeldError
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.store import LeaseRow, Store
from tests.daemon.consortium import Cluster, config
from tests.leases import another_steers, nobody_steers, take_away
from tests.store.servers import held_by_another, url_of

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTH = 10
PATIENCE_SECONDS = 60.0


@dataclass
class Clock:
    """A clock that nobody sets."""

    now: float = 5.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lease(store: Store, clock: Clock, cluster: str = "c1") -> Lease:
    return Lease(store.cluster(cluster), seconds=LENGTH, clock=clock)


def row(store: Store) -> LeaseRow:
    with store.cluster("c1").reading() as view:
        found = view.lease.read()
    assert found is not None
    return found


def write(ours: Lease) -> None:
    with ours.store.transaction() as transaction:
        transaction.estimates.keep_sampling_seed(1)


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


# -- one at a time


def test_who_takes_it_first_has_it_and_writes(store: Store, clock: Clock) -> None:
    ours, theirs = lease(store, clock), lease(store, clock)
    assert ours.try_to_take()
    assert not theirs.try_to_take()
    write(ours)
    with pytest.raises(LeaseHeldError, match=f"process {os.getpid()} on .* steers cluster c1"):
        write(theirs)
    with pytest.raises(LeaseHeldError):
        theirs.check()


def test_a_holder_without_a_sign_of_life_is_succeeded_after_its_length(
    store: Store, clock: Clock
) -> None:
    frozen, ours = lease(store, clock), lease(store, clock)
    frozen.take()
    assert not ours.try_to_take()
    clock.now += LENGTH
    assert not ours.try_to_take()
    clock.now += 0.1
    assert ours.try_to_take()
    assert row(store).token == 2
    with pytest.raises(LeaseHeldError):
        write(frozen)
    assert (frozen.is_ours, frozen.leads, ours.leads) == (False, False, True)


def test_who_freezes_with_its_writes_on_record_makes_none_of_them_later(
    store: Store, clock: Clock
) -> None:
    slurm, frozen = Cluster("c1"), lease(store, clock)
    frozen.take()
    theirs = lease(store, clock)
    slurm.fill("biology")
    slurm.submit("physics", processing_time=9)

    def freeze() -> None:
        assert not theirs.try_to_take()
        clock.now += LENGTH + 0.1
        assert theirs.try_to_take()

    slurm.before_write = freeze
    with pytest.raises(LeaseHeldError):
        Cycle(config(), slurm, frozen.store, clock=lambda: slurm.now).run()
    assert slurm.writes, "it was to write"
    assert {job.site_factor for job in slurm.jobs()} == {0}


def test_every_transaction_is_a_sign_of_life(store: Store, clock: Clock) -> None:
    holder, ours = lease(store, clock), lease(store, clock)
    holder.take()
    for _ in range(5):
        assert not ours.try_to_take()
        clock.now += 0.6 * LENGTH
        write(holder)
    assert not ours.try_to_take()


def test_a_transaction_that_is_undone_is_no_sign_of_life(store: Store, clock: Clock) -> None:
    holder, ours = lease(store, clock), lease(store, clock)
    holder.take()
    assert not ours.try_to_take()
    clock.now += 0.9 * LENGTH
    with pytest.raises(ZeroDivisionError), holder.store.transaction():
        raise ZeroDivisionError
    clock.now += 0.2 * LENGTH
    assert not holder.leads
    assert ours.try_to_take()


def test_nobody_takes_it_in_the_middle_of_its_holders_transaction(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.engine.BUSY_SECONDS", 0.05)
    with Store.open(url_of(store)) as impatient:
        holder, ours = lease(store, clock), lease(impatient, clock)
        holder.take()
        assert not ours.try_to_take()
        with holder.store.transaction():
            clock.now += 5 * LENGTH
            assert not ours.try_to_take()
        assert not ours.try_to_take()  # for what it has seen has changed
        clock.now += LENGTH + 1
        assert ours.try_to_take()


def test_no_time_that_is_written_down_decides(store: Store, clock: Clock) -> None:
    """Neither a holder whose database was a year ahead, nor one whose database was behind."""
    for shift in (86_400 * 365, -86_400 * 365):
        holder, ours = lease(store, clock), lease(store, clock)
        holder.take()
        with store._engine.begin() as connection:
            connection.exec_driver_sql(f"UPDATE lease SET renewed_at = renewed_at + {shift}")
        assert not ours.try_to_take()
        clock.now += LENGTH + 1
        assert ours.try_to_take()
        ours.release()


def test_the_same_host_and_process_number_are_no_excuse(store: Store, clock: Clock) -> None:
    with another_steers(store.cluster("c1")):
        ours = Lease(store.cluster("c1"), seconds=LENGTH)
        assert (row(store).host, row(store).pid) == (ours._host, os.getpid())
        with pytest.raises(LeaseHeldError):
            ours.take()


def test_what_is_given_back_is_taken_at_once(store: Store, clock: Clock) -> None:
    ours, theirs = lease(store, clock), lease(store, clock)
    ours.take()
    assert not theirs.try_to_take()
    ours.release()
    assert nobody_steers(store.cluster("c1"))
    assert theirs.try_to_take()


def test_who_was_succeeded_does_not_give_the_others_lease_back(store: Store, clock: Clock) -> None:
    ours = lease(store, clock)
    ours.take()
    with store.cluster("c1").transaction() as transaction:
        take_away(transaction)
    ours.release()
    assert row(store).holder == "other"


def test_every_cluster_has_its_own(store: Store, clock: Clock) -> None:
    lease(store, clock).take()
    lease(store, clock, "c2").take()


def test_giving_back_survives_a_store_that_is_away(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.engine.BUSY_SECONDS", 0.05)
    with Store.open(url_of(store)) as impatient:
        ours = lease(impatient, clock)
        ours.take()
        with held_by_another(store):
            ours.release()
        assert not nobody_steers(store.cluster("c1"))


# -- what is written elsewhere


def test_the_store_is_asked_before_a_write_elsewhere_only_when_the_last_sign_is_old(
    store: Store, clock: Clock
) -> None:
    ours = lease(store, clock)
    ours.take()
    beat = row(store).beat
    clock.now += 0.49 * LENGTH
    ours.store.check()
    assert row(store).beat == beat
    clock.now += 0.02 * LENGTH
    ours.store.check()
    ours.store.check()
    assert row(store).beat == beat + 1


def test_who_wakes_up_after_a_takeover_writes_nothing_elsewhere(store: Store, clock: Clock) -> None:
    frozen = lease(store, clock)
    frozen.take()
    clock.now += 3 * LENGTH
    with store.cluster("c1").transaction() as transaction:
        take_away(transaction)
    with pytest.raises(LeaseHeldError, match="process 1 on elsewhere"):
        frozen.store.check()


# -- on a thread of its own


def test_the_holder_shows_life_however_long_its_cycle_takes(store: Store) -> None:
    ours = Lease(store.cluster("c1"), seconds=2)
    with ours.held():
        beat = row(store).beat
        until(lambda: row(store).beat > beat + 2)
        assert ours.leads
    assert nobody_steers(store.cluster("c1"))


def test_who_waits_hears_when_it_leads_and_when_it_does_not_any_more(store: Store) -> None:
    leads, lost = threading.Event(), threading.Event()
    ours = Lease(store.cluster("c1"), seconds=2)
    with another_steers(store.cluster("c1")):
        ours.keep(leads.set, lambda _: lost.set())
        assert not leads.wait(1.0)
    assert leads.wait(PATIENCE_SECONDS)
    with store.cluster("c1").transaction() as transaction:
        take_away(transaction, ttl=2)
    assert lost.wait(PATIENCE_SECONDS)
    leads.clear()
    assert leads.wait(PATIENCE_SECONDS)  # the other one has shown no life since
    ours.release()
