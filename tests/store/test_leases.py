"""Only one process at a time holds a cluster's lease, and what it was by its token shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from shapleyprio.store import StoreBusyError, StoreSchemaError, migrations
from tests.store.servers import on_each_database

if TYPE_CHECKING:
    from shapleyprio.store import LeaseRow, Store, Transaction


def take(rows: Transaction, holder: str, instead_of: LeaseRow | None) -> int | None:
    return rows.lease.take(holder, "h1", 7, ttl=30, instead_of=instead_of)


def now(rows: Transaction) -> LeaseRow:
    lease = rows.lease.read()
    assert lease is not None
    return lease


def test_the_token_grows_with_each_takeover_and_each_return(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        assert rows.lease.read() is None
        assert take(rows, "a", None) == 1
        assert take(rows, "b", now(rows)) == 2
        assert rows.lease.release("b", 2)
        assert not now(rows).is_held
        assert take(rows, "a", now(rows)) == 3
        assert (now(rows).holder, now(rows).host, now(rows).pid, now(rows).ttl) == (
            "a",
            "h1",
            7,
            30,
        )


def test_a_lease_that_changed_since_it_was_seen_cannot_be_taken(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        take(rows, "a", None)
        seen = now(rows)
        assert rows.lease.renew("a", 1)
        assert now(rows).shows_life_since(seen)
        assert take(rows, "b", seen) is None
        assert take(rows, "b", now(rows)) == 2


def test_who_was_succeeded_can_neither_renew_nor_give_back(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        take(rows, "a", None)
        take(rows, "b", now(rows))
        before = now(rows)
        assert not rows.lease.renew("a", 1)
        assert not rows.lease.release("a", 1)
        assert not rows.lease.renew("a", 2)  # nor by a token that it has not got
        assert not now(rows).shows_life_since(before)


def test_the_first_of_all_is_taken_once(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        take(rows, "a", None)
    with (
        pytest.raises(StoreBusyError, match="another process is taking the lease"),
        store.cluster("c").transaction() as rows,
    ):
        take(rows, "b", None)
    with store.cluster("c").transaction() as rows:
        assert now(rows).holder == "a"


def test_its_age_is_by_the_clock_of_the_database(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        take(rows, "a", None)
        assert 0 <= now(rows).age <= 5
        assert now(rows).since == now(rows).renewed_at > 1_700_000_000


@on_each_database
def test_a_process_of_another_release_than_the_tables_neither_takes_nor_renews(
    store: Store,
) -> None:
    place = store.cluster("c")
    with place.transaction() as rows:
        take(rows, "a", None)
    with place.transaction() as rows:
        rows.lease._connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with (
        pytest.raises(StoreSchemaError, match=r"at revision 9999, .* no longer steers"),
        place.transaction() as rows,
    ):
        rows.lease.renew("a", 1)
    with pytest.raises(StoreSchemaError, match="9999"), place.transaction() as rows:
        take(rows, "b", now(rows))
    with place.transaction() as rows:
        rows.lease._connection.execute(
            text("UPDATE alembic_version SET version_num = :head"), {"head": migrations.HEAD}
        )
        assert rows.lease.renew("a", 1)
