"""Transactions are whole, apart from each other, and on the tables that the migrations make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from shapleyprio.store import StoreError
from shapleyprio.store.errors import store_errors
from shapleyprio.store.schema import metadata
from tests.leases import take_away
from tests.store.examples import BEGIN, placed_run, watermark

if TYPE_CHECKING:
    from shapleyprio.store import Store


def test_migrations_make_exactly_the_tables_of_the_code(store: Store) -> None:
    with store._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_clusters_do_not_see_each_other(store: Store) -> None:
    with store.cluster("a").transaction() as rows:
        rows.runs.put([placed_run(1)])
        rows.ledger.save_watermark(watermark())
    with store.cluster("b").transaction() as rows:
        assert list(rows.runs.all_runs()) == []
        assert rows.runs.unfinished() == []
        assert list(rows.runs.runs_alive_after(0)) == []
        assert list(rows.runs.allocations_with_event_between(0, 2 * BEGIN)) == []
        assert list(rows.runs.unfinished_allocated()) == []
        assert rows.ledger.watermark() is None
        assert rows.runs.prune(2 * BEGIN) == 0
        rows.runs.put([placed_run(1, organization="biology")])
        rows.runs.remove([placed_run(1)[0].key])
        take_away(rows)
    with store.cluster("a").reading() as view:
        assert list(view.runs.all_runs()) == [placed_run(1)]
        assert view.lease.read() is None
    assert store.clusters() == ["a", "b"]
    assert store.sizes()["run"] == store.sizes()["allocation"] == 1


def test_an_exception_undoes_the_whole_transaction(store: Store) -> None:
    def fail_midway() -> None:
        with store.cluster("c").transaction() as rows:
            rows.runs.put([placed_run(1)])
            rows.ledger.save_watermark(watermark())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()
    assert set(store.sizes().values()) == {0}


def test_a_reader_sees_one_moment_and_does_not_wait_for_the_writer(store: Store) -> None:
    with store.cluster("c").reading() as view:
        assert view.ledger.watermark() is None
        with store.cluster("c").transaction() as rows:
            rows.ledger.save_watermark(watermark())
            assert view.ledger.watermark() is None
        assert view.ledger.watermark() is None
    with store.cluster("c").reading() as view:
        assert view.ledger.watermark() == watermark()


def test_errors_that_are_not_the_databases_pass(store: Store) -> None:
    with pytest.raises(KeyError), store_errors("x"):
        raise KeyError


def test_errors_are_one_line(store: Store) -> None:
    with (
        pytest.raises(StoreError, match="nowhere") as caught,
        store._begin() as connection,
    ):
        connection.exec_driver_sql("SELECT *\nFROM nowhere")
    assert "\n" not in str(caught.value)
