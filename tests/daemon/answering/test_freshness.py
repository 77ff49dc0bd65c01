"""Whether what the store says still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import update

from shapleyprio.daemon.answering.freshness import Steering, read_steering
from shapleyprio.store.tables import lease
from tests.daemon.consortium import NAME, Service
from tests.leases import take_away

if TYPE_CHECKING:
    from shapleyprio.store import Store

POLL = 30


def ended(service: Service) -> int:
    with service.store.cluster(NAME).reading() as view:
        cycle = view.history.last_cycle()
    assert cycle is not None
    return cycle.finished


def read(service: Service, later: int) -> Steering:
    at = ended(service) + later
    return read_steering(service.store.cluster(NAME), POLL, clock=lambda: at)


def lease_of(store: Store, age: int) -> None:
    """Somebody has the lease, who showed life so many seconds ago."""
    with store.cluster(NAME).transaction() as transaction:
        take_away(transaction, ttl=10)
        transaction.lease._connection.execute(
            update(lease).values(renewed_at=lease.c.renewed_at - age)
        )


def test_a_daemon_that_runs_its_cycles_leaves_nothing_to_say(steered: Service) -> None:
    lease_of(steered.store, age=0)
    found = read(steered, later=POLL)
    assert (found.age, found.is_stale, found.nobody_since) == (POLL, False, None)


def test_nobody_steers_since_the_last_cycle_of_a_daemon_that_has_ended(steered: Service) -> None:
    soon, late = read(steered, later=5), read(steered, later=3 * POLL + 1)
    assert (soon.nobody_since, soon.is_stale) == (ended(steered), False)
    assert (late.nobody_since, late.is_stale) == (ended(steered), True)


def test_a_daemon_whose_cycles_fail_steers_and_is_out_of_date(steered: Service) -> None:
    lease_of(steered.store, age=0)
    found = read(steered, later=100)
    assert (found.nobody_since, found.is_stale) == (None, True)


def test_a_lease_without_a_sign_of_life_for_some_intervals_is_nobodys(steered: Service) -> None:
    lease_of(steered.store, age=2 * POLL)
    assert read(steered, later=300).nobody_since is None
    lease_of(steered.store, age=4 * POLL)
    assert read(steered, later=300).nobody_since == ended(steered)


def test_a_rollback_is_on_record_until_the_next_cycle(steered: Service) -> None:
    assert read(steered, later=5).rolled_back_at is None
    steered.slurm.wait(5)
    steered.roll_back()
    found = read(steered, later=5)
    assert (found.rolled_back_at, found.is_stale) == (steered.slurm.now, True)
    steered.slurm.wait(5)
    steered.run()
    assert (read(steered, later=5).rolled_back_at, read(steered, later=5).is_stale) == (None, False)


def test_before_the_first_cycle_there_is_nothing_to_be_out_of_date(service: Service) -> None:
    found = read_steering(service.store.cluster(NAME), POLL)
    assert (found.cycle_ended, found.nobody_since, found.is_stale) == (None, None, False)
