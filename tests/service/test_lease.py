"""One process at a time steers a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from shapleyprio.service.lease import Lease, LeaseHeldError
from shapleyprio.store import LeaseRow, Store

if TYPE_CHECKING:
    from pathlib import Path

TTL = 300


@dataclass
class Clock:
    now: int = 1_800_000_000

    def __call__(self) -> float:
        return float(self.now)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lease(store: Store, clock: Clock, cluster: str = "c1") -> Lease:
    return Lease(store.cluster(cluster), seconds=TTL, clock=clock)


def held(store: Store) -> LeaseRow | None:
    with store.cluster("c1").reading() as view:
        return view.lease()


def take(store: Store, clock: Clock, *, host: str, pid: int) -> None:
    """Another process takes the lease."""
    with store.cluster("c1").transaction() as transaction:
        assert transaction.take_lease("other", host, pid, now=clock.now, ttl=TTL) is None


def living_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def test_who_has_it_keeps_it(store: Store, clock: Clock) -> None:
    ours = lease(store, clock)
    for _ in range(3):
        ours.renew()
        clock.now += 10 * TTL
    row = held(store)
    assert row is not None
    assert row.pid == os.getpid()
    assert row.renewed_at == clock.now - 10 * TTL
    assert row.since == 1_800_000_000


def test_a_living_process_on_this_host_keeps_others_away(store: Store, clock: Clock) -> None:
    ours = lease(store, clock)
    with living_process() as other:
        take(store, clock, host=ours._host, pid=other.pid)
        with pytest.raises(LeaseHeldError, match=f"process {other.pid} on {ours._host}"):
            ours.renew()
        other.communicate()


def test_who_has_it_is_named_even_while_it_writes_for_long(
    store: Store, clock: Clock, store_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(store, clock, host="elsewhere", pid=1)
    monkeypatch.setattr("shapleyprio.store.engine.BUSY_SECONDS", 0.05)
    with (
        Store.open(f"sqlite:///{store_file}") as impatient,
        store.cluster("c1").transaction(),
        pytest.raises(LeaseHeldError, match="on elsewhere steers"),
    ):
        lease(impatient, clock).renew()


def test_a_dead_process_on_this_host_is_succeeded_at_once(store: Store, clock: Clock) -> None:
    ours = lease(store, clock)
    with living_process() as other:
        other.communicate()
    take(store, clock, host=ours._host, pid=other.pid)
    ours.renew()
    row = held(store)
    assert row is not None
    assert row.pid == os.getpid()


def test_our_own_number_after_a_reboot_is_a_dead_process(store: Store, clock: Clock) -> None:
    ours = lease(store, clock)
    take(store, clock, host=ours._host, pid=os.getpid())
    ours.renew()


def test_another_host_is_succeeded_when_its_lease_has_run_out(store: Store, clock: Clock) -> None:
    ours = lease(store, clock)
    take(store, clock, host="elsewhere", pid=os.getpid())
    clock.now += TTL
    with pytest.raises(LeaseHeldError, match=f"on elsewhere .* wait {TTL} s"):
        ours.renew()
    clock.now += 1
    ours.renew()


def test_who_was_succeeded_does_not_get_it_back(store: Store, clock: Clock) -> None:
    ours = lease(store, clock)
    ours.renew()
    clock.now += TTL + 1
    take(store, clock, host="elsewhere", pid=1)
    with pytest.raises(LeaseHeldError):
        ours.renew()
    ours.release()
    row = held(store)
    assert row is not None
    assert row.holder == "other"


def test_what_is_given_back_is_free(store: Store, clock: Clock) -> None:
    ours = lease(store, clock)
    ours.renew()
    ours.release()
    assert held(store) is None
    take(store, clock, host="elsewhere", pid=1)


def test_every_cluster_has_its_own(store: Store, clock: Clock) -> None:
    take(store, clock, host="elsewhere", pid=1)
    lease(store, clock, "c2").renew()


def test_giving_back_survives_a_store_that_is_away(
    store: Store, store_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.engine.BUSY_SECONDS", 0.05)
    with Store.open(f"sqlite:///{store_file}") as impatient:
        ours = Lease(impatient.cluster("c1"), seconds=TTL)
        ours.renew()
        with store.cluster("c1").transaction():
            ours.release()
        assert held(store) is not None
        ours.release()
        assert held(store) is None
