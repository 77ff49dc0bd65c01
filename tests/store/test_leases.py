"""Only one process at a time holds a cluster's lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapleyprio.store import LeaseRow
from tests.store.examples import BEGIN

if TYPE_CHECKING:
    from shapleyprio.store import Store, Transaction

A = LeaseRow(holder="a", host="h1", pid=7, since=BEGIN, renewed_at=BEGIN, ttl=30)


def take(rows: Transaction, holder: str, now: int) -> LeaseRow | None:
    return rows.take_lease(holder, "h1", 7, now=now, ttl=30)


def test_the_first_to_ask_has_the_lease_until_it_runs_out(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        assert rows.lease() is None
        assert take(rows, "a", BEGIN) is None
        assert rows.lease() == A
        assert take(rows, "b", BEGIN + 30) == A
        assert take(rows, "b", BEGIN + 31) is None
        assert take(rows, "a", BEGIN + 32) is not None


def test_renewing_keeps_it(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        take(rows, "a", BEGIN)
        assert take(rows, "a", BEGIN + 25) is None
        lease = take(rows, "b", BEGIN + 55)
        assert lease is not None
        assert (lease.since, lease.renewed_at) == (BEGIN, BEGIN + 25)


def test_a_clock_set_back_does_not_lose_it(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        take(rows, "a", BEGIN)
        assert take(rows, "b", BEGIN - 10_000) == A


def test_only_its_holder_can_give_it_back(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        take(rows, "a", BEGIN)
        rows.release_lease("b")
        assert rows.lease() == A
        rows.release_lease("a")
        assert rows.lease() is None
        assert take(rows, "b", BEGIN) is None
