"""Whatever happens, the store holds what was committed, and says what is wrong in one line."""

from __future__ import annotations

import resource
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event

from shapleyprio.store import (
    Store,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
)
from tests.store.examples import BEGIN, placed_run, watermark

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITER = """
import sys, time
from shapleyprio.store import Store
from tests.store.examples import BEGIN, placed_run, watermark
with Store.open(sys.argv[1]) as store, store.cluster("c").transaction() as rows:
    rows.runs.put(placed_run(n, BEGIN + n) for n in range(30_000))
    rows.ledger.save_watermark(watermark(observed_until=BEGIN + 30_000))
    print("written", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url, create=True) as store:
        yield store


def test_a_locked_store_is_busy_and_works_again_afterwards(
    store: Store, url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.engine.BUSY_SECONDS", 0.05)
    other = sqlite3.connect(file, isolation_level=None)
    with Store.open(url) as impatient:
        other.execute("BEGIN IMMEDIATE")
        with (
            pytest.raises(StoreBusyError, match=r"store\.db: another process is writing to it"),
            impatient.cluster("c").transaction(),
        ):
            pass
        with impatient.cluster("c").reading() as view:
            assert view.ledger.watermark() is None
        other.execute("ROLLBACK")
        with impatient.cluster("c").transaction() as rows:
            rows.ledger.save_watermark(watermark())
    other.close()


def test_threads_of_a_store_wait_for_each_other_however_long(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shapleyprio.store.engine.BUSY_SECONDS", 0.05)
    with Store.open(url, create=True) as store, ThreadPoolExecutor(1) as thread:
        with store.cluster("c").transaction() as rows:
            rows.ledger.save_watermark(watermark())
            other = thread.submit(
                store.cluster("c").transact, lambda later: later.ledger.watermark()
            )
            assert wait([other], 0.5).not_done
        assert other.result(60) == watermark()


def test_a_full_store_keeps_what_it_had(store: Store) -> None:
    with store.cluster("c").transaction() as rows:
        rows.runs.put([placed_run(1)])
        rows.ledger.save_watermark(watermark())
    store.close()

    def limit(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA max_page_count = 100")

    event.listen(store._engine, "connect", limit)

    def write_much() -> None:
        with store.cluster("c").transaction() as rows:
            rows.ledger.save_watermark(watermark(observed_until=2 * BEGIN))
            rows.runs.put(placed_run(n) for n in range(20_000))

    with pytest.raises(StoreFullError, match=r"store\.db: it is full"):
        write_much()
    with store.cluster("c").transaction() as rows:
        assert list(rows.runs.all_runs()) == [placed_run(1)]
        assert rows.ledger.watermark() == watermark()
        rows.runs.put([placed_run(2)])


def test_a_disk_without_room_for_the_log_is_full(store: Store, url: str) -> None:
    store.close()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(StoreFullError, match=r"store\.db: it is full"):
            Store.open(url)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_writer_killed_in_the_middle_leaves_the_old_state(store: Store, url: str) -> None:
    with store.cluster("c").transaction() as rows:
        rows.runs.put([placed_run(1)])
        rows.ledger.save_watermark(watermark())
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "written\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    with Store.open(url) as again, again.cluster("c").transaction() as rows:
        assert list(rows.runs.all_runs()) == [placed_run(1)]
        assert rows.ledger.watermark() == watermark()
        rows.runs.put([placed_run(2)])
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_what_is_committed_survives_a_power_cut(store: Store) -> None:
    with store._engine.connect() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
    }


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:////no/such/place/store.db", "directory /no/such/place does not exist"),
        ("sqlite:////proc/self/store.db", "/proc/self"),
        ("sqlite:////proc", "/proc"),
    ],
)
def test_a_place_that_cannot_be_used_is_named(url: str, message: str) -> None:
    with pytest.raises(StoreUnreachableError, match=message):
        Store.open(url, create=True)


def test_a_directory_without_permission_is_named(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda place, _: place != tmp_path)  # root may everything
    with pytest.raises(StoreUnreachableError, match=r"directory .* must be writable"):
        Store.open(url, create=True)


def test_a_file_without_permission_is_named(
    store: Store, url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda place, _: place != file)
    with pytest.raises(StoreUnreachableError, match="must be readable and writable"):
        Store.open(url)


def test_a_file_that_is_no_database_is_named(url: str, file: Path) -> None:
    file.write_text("some text\n" * 1000)
    with pytest.raises(StoreError, match=r"store\.db: the file is not a SQLite database"):
        Store.open(url, create=True)
    assert file.read_text() == "some text\n" * 1000


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("store.db", "URL: it cannot be read"),
        ("nosuchbase://user:secret@host/store", "URL: 'nosuchbase' cannot be used; take one of"),
        ("postgresql://user:se@cret@host/store", "URL: it has several @; in a password write @"),
        ("mysql://user:secret@host/store?charset=nosuch", "mysql.*: its query cannot be used"),
        ("postgresql+pg8000://user:secret@host/store", "needs the Python package pg8000"),
    ],
)
def test_a_url_that_cannot_be_used_is_explained(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message) as caught:
        Store.open(url)
    assert "secret" not in str(caught.value)
    assert "cret@" not in str(caught.value)


@pytest.mark.parametrize(
    ("scheme", "package", "extra"),
    [
        ("postgresql", "psycopg", "postgresql"),
        ("postgres", "psycopg", "postgresql"),
        ("mysql", "pymysql", "mariadb"),
        ("mariadb", "pymysql", "mariadb"),
    ],
)
def test_a_missing_driver_is_one_line_that_names_the_extra(
    scheme: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StoreError) as caught:
        Store.open(f"{scheme}://user:secret@host/store")
    assert str(caught.value) == (
        f"the store's URL needs the Python package {package}: pip install 'shapleyprio[{extra}]'"
    )


def test_without_the_systems_library_of_postgresql_the_message_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "psycopg.py").write_text("raise ImportError('no pq wrapper available.\\nAttempts')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StoreError, match="install libpq5") as caught:
        Store.open("postgresql://host/store")
    assert "\n" not in str(caught.value)
