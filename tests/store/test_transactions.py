"""Transactions are whole, apart from each other, and on the tables that the migrations make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from shapleyprio.store import StoreError
from shapleyprio.store.errors import store_errors
from shapleyprio.store.tables import metadata
from tests.store.examples import BEGIN, placed_run, progress

if TYPE_CHECKING:
    from shapleyprio.store import Store


def test_migrations_make_exactly_the_tables_of_the_code(store: Store) -> None:
    with store._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_clusters_do_not_see_each_other(store: Store) -> None:
    with store.transaction("a") as rows:
        rows.put_runs([placed_run(1)])
        rows.save_progress(progress())
    with store.transaction("b") as rows:
        assert list(rows.all_runs()) == []
        assert rows.unfinished_runs() == []
        assert list(rows.runs_alive_after(0)) == []
        assert list(rows.placements_with_event_between(0, 2 * BEGIN)) == []
        assert rows.running_by_organization() == {}
        assert rows.progress() is None
        assert rows.prune_runs(2 * BEGIN) == 0
        rows.put_runs([placed_run(1, organization="biology")])
        rows.remove_runs([placed_run(1)[0].key])
        rows.take_lease("x", "h", 1, now=BEGIN, ttl=30)
    with store.reading("a") as view:
        assert list(view.all_runs()) == [placed_run(1)]
        assert view.lease() is None
    assert store.clusters() == ["a", "b"]
    assert store.sizes()["run"] == store.sizes()["placement"] == 1


def test_an_exception_undoes_the_whole_transaction(store: Store) -> None:
    def fail_midway() -> None:
        with store.transaction("c") as rows:
            rows.put_runs([placed_run(1)])
            rows.save_progress(progress())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()
    assert set(store.sizes().values()) == {0}


def test_a_reader_sees_one_moment_and_does_not_wait_for_the_writer(store: Store) -> None:
    with store.reading("c") as view:
        assert view.progress() is None
        with store.transaction("c") as rows:
            rows.save_progress(progress())
            assert view.progress() is None
        assert view.progress() is None
    with store.reading("c") as view:
        assert view.progress() == progress()


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
