"""Migrations make the tables the code works with, on every make of database."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, make_url
from sqlalchemy.schema import CreateIndex, CreateTable

from shapleyprio.store import Store, StoreSchemaError, StoreUnreachableError, migrations
from shapleyprio.store.schema import metadata
from tests.store.examples import placed_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlalchemy import Engine


def schema(engine: Engine) -> dict[str, list[tuple[object, ...]]]:
    """Everything SQLite knows of columns, keys and references."""
    with engine.connect() as connection:
        return {
            f"{pragma} {name}": sorted(
                tuple(row)[1:]  # their numbers say nothing
                for row in connection.exec_driver_sql(f"PRAGMA {pragma}({name})")
            )
            for pragma in ("table_info", "foreign_key_list")
            for name in metadata.tables
        }


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url, create=True) as store:
        yield store


def test_migrations_make_the_same_columns_keys_and_references_as_the_code(store: Store) -> None:
    direct = create_engine("sqlite://")
    metadata.create_all(direct)
    assert schema(store._engine) == schema(direct)
    direct.dispose()


@pytest.mark.parametrize("name", ["postgresql", "mysql", "mariadb"])
def test_tables_can_be_made_on_servers(name: str) -> None:
    dialect = make_url(f"{name}://").get_dialect()()
    for table in metadata.sorted_tables:
        assert str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            assert str(CreateIndex(index).compile(dialect=dialect))


def test_keys_fit_into_an_index_of_mariadb() -> None:
    for table in metadata.tables.values():
        for columns in (table.primary_key.columns, *(index.columns for index in table.indexes)):
            size = sum(4 * (getattr(column.type, "length", None) or 2) for column in columns)
            assert size <= 3072, table.name


def test_a_first_start_makes_the_tables(url: str, file: Path) -> None:
    with Store.open(url, any_revision=True) as store:
        assert store.revision() is None
    assert not file.exists()
    with pytest.raises(StoreUnreachableError, match="no such file; run `shapleyprio db upgrade`"):
        Store.open(url)
    assert not file.exists()
    with Store.open(url, create=True) as store:
        assert store.revision() == migrations.HEAD
    with Store.open(url) as store:
        assert store.clusters() == []


def test_db_upgrade_makes_a_missing_store(url: str) -> None:
    with Store.open(url, any_revision=True) as store:
        store.upgrade()
        store.upgrade()
    Store.open(url).close()


def test_an_empty_file_is_an_empty_store(url: str, file: Path) -> None:
    file.touch()
    with pytest.raises(StoreSchemaError, match=r"at revision none.*run `shapleyprio db upgrade`"):
        Store.open(url)
    Store.open(url, create=True).close()


def set_revision(file: Path, revision: str) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", [revision])
    connection.close()


def test_the_revisions_are_those_of_the_migrations() -> None:
    scripts = ScriptDirectory(str(migrations.scripts()))
    found = [script.revision for script in scripts.walk_revisions()]
    assert tuple(reversed(found)) == migrations.REVISIONS


def test_several_stores_are_made_at_once(tmp_path: Path) -> None:
    ready = Barrier(8)

    def make(number: int) -> str | None:
        ready.wait()
        with Store.open(f"sqlite:///{tmp_path / f'{number}.db'}", create=True) as store:
            return store.revision()

    head = migrations.HEAD
    with ThreadPoolExecutor(ready.parties) as pool:
        assert {*pool.map(make, range(ready.parties))} == {head}


def test_an_older_store_is_not_touched_at_start(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.cluster("c").transaction() as rows:
        rows.runs.put([placed_run(1)])
    monkeypatch.setattr(migrations, "HEAD", "9999")
    for create in (False, True):
        with pytest.raises(
            StoreSchemaError, match=r"at revision \d{4}, .*9999; run `shapleyprio db upgrade`"
        ):
            Store.open(url, create=create)


def test_a_store_of_a_newer_release_is_refused(store: Store, url: str, file: Path) -> None:
    set_revision(file, "8888")
    with pytest.raises(StoreSchemaError, match=r"newer release wrote it, .*8888.*install"):
        Store.open(url)
    with Store.open(url, any_revision=True) as newer:
        for use in (newer.revision, newer.upgrade):
            with pytest.raises(StoreSchemaError, match="newer release"):
                use()


@pytest.mark.parametrize(
    "changed",
    ["ALTER TABLE run DROP COLUMN counted", "ALTER TABLE run ADD extra INT", "DROP TABLE sampling"],
)
def test_a_store_whose_tables_are_not_those_of_its_revision_is_refused(
    store: Store, url: str, file: Path, changed: str
) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute(changed)
    connection.close()
    refusal = r"test version .* columns in (run|sampling) than .*; give the store an empty database"
    for open_store in (Store.open, Store.open_existing):
        with pytest.raises(StoreSchemaError, match=refusal):
            open_store(url)
    with Store.open(url, any_revision=True) as older:
        for use in (older.revision, older.upgrade):
            with pytest.raises(StoreSchemaError, match=refusal):
                use()


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ("DROP TABLE run; CREATE VIEW Run AS {endless}", "the view Run"),
        (
            "DROP TABLE alembic_version; CREATE VIEW alembic_version AS {endless}",
            "the view alembic_version",
        ),
        ("DROP TABLE run; CREATE VIRTUAL TABLE run USING fts5(x)", "the virtual table run"),
        (
            "CREATE TRIGGER slow AFTER INSERT ON lease BEGIN SELECT 1; END",
            "the trigger slow",
        ),
    ],
)
def test_a_store_with_a_program_in_the_place_of_a_table_is_refused(
    store: Store, url: str, file: Path, made: str, named: str
) -> None:
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"
    with sqlite3.connect(file) as connection:
        connection.executescript(made.format(endless=endless))
    connection.close()
    for open_store in (Store.open, Store.open_existing):
        with pytest.raises(StoreSchemaError, match=f"it has {named} where .* only plain tables"):
            open_store(url)


def test_an_admins_own_view_of_a_store_is_not_in_the_way(
    store: Store, url: str, file: Path
) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE VIEW mine AS SELECT * FROM run")
    connection.close()
    Store.open(url).close()


def test_a_database_of_something_else_is_left_alone(url: str, file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE precious (x)")
    connection.close()
    for create in (False, True):
        with pytest.raises(StoreSchemaError, match=r"tables of another program \(precious"):
            Store.open(url, create=create)
    with (
        Store.open(url, any_revision=True) as store,
        pytest.raises(StoreSchemaError, match="precious"),
    ):
        store.upgrade()


def test_a_failed_migration_leaves_nothing_behind(
    url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = migrations.upgrade

    def half(connection: object) -> None:
        real(connection)  # type: ignore[arg-type]
        raise RuntimeError("power cut")

    monkeypatch.setattr(migrations, "upgrade", half)
    with pytest.raises(RuntimeError, match="power cut"):
        Store.open(url, create=True)
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT * FROM sqlite_master").fetchall() == []
    connection.close()
