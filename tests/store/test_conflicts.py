"""What the database undoes for the sake of others is done anew, and nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.store import (
    StoreBusyError,
    StoreConflictError,
    StoreError,
    Transaction,
    cluster_store,
    tables,
)
from tests.store.examples import placed_run, watermark
from tests.store.rivals import Rival
from tests.store.servers import SERVERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapleyprio.store import Store
    from tests.store.servers import Databases

SIGNALS = {
    "postgresql": "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{}'; END $$",
    "mariadb": "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {}",
}
"""Kind of server -> a statement that fails by an error of one's choice."""

UNDONE = {"postgresql": ["40001", "40P01"], "mariadb": ["1020", "1205", "1213"]}
BUSY = {"postgresql": ["55P03", "57014", "25P03"], "mariadb": ["1969", "4031"]}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, databases: Databases) -> Iterator[Store]:
    with databases.store(request.param) as store:
        yield store


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_store, "LONGEST_PAUSE_SECONDS", 0.0)


def test_of_two_that_lock_rows_in_opposite_order_both_succeed(server: Store) -> None:
    plain = server.cluster("c1")
    plain.transact(lambda rows: rows.ledger.save_watermark(watermark()))
    lease = Lease(plain, seconds=60)
    lease.take()
    rival = Rival(server, "c1", lease)
    ours = plain.fenced(rival)
    rival.arm(tables.watermark)
    work = []

    def count(rows: Transaction) -> str:
        work.append("begun")
        rows.runs.put([placed_run(1)])
        rows.ledger.save_watermark(watermark(accounted_to=7))
        return "done"

    assert ours.transact(count) == "done"
    rival.end()
    assert (rival.met, work, ours.conflicts) == (1, ["begun"] * 2, 1)
    with plain.reading() as view:
        assert list(view.runs.all_runs()) == [placed_run(1)]
        assert view.ledger.watermark() == watermark(accounted_to=7)
    with server.cluster("rival").reading() as view:
        assert sum(1 for _ in view.runs.all_runs()) > 0


def test_what_databases_call_retryable_is_a_conflict(server: Store) -> None:
    kind = server._engine.dialect.name
    for code in [*UNDONE[kind], *BUSY[kind]]:
        with pytest.raises(StoreBusyError) as caught, server._begin() as connection:
            connection.exec_driver_sql(SIGNALS[kind].format(code))
        assert isinstance(caught.value, StoreConflictError) == (code in UNDONE[kind]), code


def test_it_is_given_up_after_some_tries(store: Store) -> None:
    rows, tries = store.cluster("c1"), []

    def fail(transaction: Transaction) -> None:
        tries.append(1)
        transaction.runs.put([placed_run(1)])
        raise StoreConflictError("again")

    with pytest.raises(StoreConflictError, match="again"):
        rows.transact(fail)
    assert len(tries) == cluster_store.MOST_TRIES == rows.conflicts + 1
    with rows.reading() as view:
        assert list(view.runs.all_runs()) == []


def test_no_try_begins_late(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_store, "TRIES_SECONDS", 0.0)
    rows, tries = store.cluster("c1"), []

    def fail(_transaction: Transaction) -> None:
        tries.append(1)
        raise StoreConflictError("again")

    with pytest.raises(StoreConflictError, match="again"):
        rows.transact(fail)
    assert len(tries) == 1


@pytest.mark.parametrize("failure", [StoreBusyError, StoreError, ValueError])
def test_nothing_else_is_done_anew(store: Store, failure: type[Exception]) -> None:
    rows, tries = store.cluster("c1"), []

    def fail(_transaction: Transaction) -> None:
        tries.append(1)
        raise failure("no matter")

    with pytest.raises(failure):
        rows.transact(fail)
    assert (len(tries), rows.conflicts) == (1, 0)
