"""Private database servers for tests, each in a directory of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, NullPool, create_engine, make_url

from shapleyprio.databases import database_url
from shapleyprio.store import Store
from shapleyprio.store.tables import metadata
from shapleyprio.testbed.processes import wait_until

PLACES = os.pathsep.join(
    [*map(str, Path("/usr/lib/postgresql").glob("*/bin")), "/usr/sbin", os.environ["PATH"]]
)
PATIENCE_SECONDS = 60.0


SERVERS = [pytest.param(kind, marks=pytest.mark.real_server) for kind in ("postgresql", "mariadb")]
"""Kinds of servers, as parameters of tests and fixtures."""

KINDS = ["sqlite", *SERVERS]
"""Kinds of databases, as parameters of tests and fixtures."""


class Databases:
    """Databases on private servers, one of each kind, which are started when first asked for."""

    def __init__(self) -> None:
        self._started = ExitStack()
        self._servers: dict[str, URL] = {}
        self._stores: dict[str, str] = {}
        self._numbers = count(1)

    def close(self) -> None:
        """Stops the servers."""
        self._started.close()

    @contextmanager
    def empty(self, kind: str) -> Iterator[str]:
        """URL of a database without tables, as people type it; skips where there is no server.

        Args:
            kind: ``postgresql`` or ``mariadb``.
        """
        server = self._server(kind)
        name = f"shapleyprio{next(self._numbers)}"
        self._execute(server, f"CREATE DATABASE {name}")
        yield server.set(database=name).render_as_string(hide_password=False)
        self._execute(
            server, f"DROP DATABASE {name}{' WITH (FORCE)' if kind == 'postgresql' else ''}"
        )

    @contextmanager
    def store(self, kind: str, file: Path) -> Iterator[Store]:
        """An empty store of this release; its tables are made once for each server.

        Args:
            kind: as above, or ``sqlite``.
            file: where a store in SQLite is made.
        """
        if kind == "sqlite":
            url = f"sqlite:///{file}"
        elif kind not in self._stores:
            url = self._stores[kind] = self._started.enter_context(self.empty(kind))
        else:
            url = self._stores[kind]
        with Store.open(url, create=True) as store:
            yield store
            if kind != "sqlite":
                with store._engine.begin() as connection:
                    for table in reversed(metadata.sorted_tables):
                        connection.execute(table.delete())

    def _server(self, kind: str) -> URL:
        if kind not in self._servers:
            start = {"postgresql": _postgresql, "mariadb": _mariadb}[kind]
            # not where a test has its files: the server's user gets there, and its socket's path
            # is short
            place = tempfile.TemporaryDirectory(prefix="store-", dir="/tmp")
            folder = Path(self._started.enter_context(place))
            self._servers[kind] = make_url(self._started.enter_context(start(folder)))
        return self._servers[kind]

    def _execute(self, server: URL, statement: str) -> None:
        engine = create_engine(
            database_url(server.render_as_string()),
            isolation_level="AUTOCOMMIT",
            poolclass=NullPool,
        )
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)


@contextmanager
def _postgresql(folder: Path, superuser: str = "shapleyprio") -> Iterator[str]:
    psycopg = pytest.importorskip("psycopg")
    user = _user(folder, "postgres")
    data = str(folder / "data")
    _run(user, "initdb", "-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--no-sync")
    options = ("-c", "listen_addresses=", "-c", "fsync=off", "-k", str(folder))
    place = {"host": str(folder), "user": superuser, "dbname": "postgres"}
    with _running(user, lambda: psycopg.connect(**place), "postgres", "-D", data, *options):
        yield f"postgresql://{superuser}@/postgres?host={folder}"


@contextmanager
def _mariadb(folder: Path) -> Iterator[str]:
    pymysql = pytest.importorskip("pymysql")
    user = _user(folder, "mysql")
    place = ("--no-defaults", f"--datadir={folder / 'data'}", f"--tmpdir={folder}")
    own = ("--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
    _run(user, "mariadb-install-db", *place, *own)
    file = folder / "socket"
    options = (f"--socket={file}", "--skip-networking", f"--pid-file={folder / 'pid'}")
    unsafe = ("--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync")
    access = {"unix_socket": str(file), "user": "root"}
    with _running(user, lambda: pymysql.connect(**access), "mariadbd", *place, *options, *unsafe):
        yield f"mariadb://root@localhost/mysql?unix_socket={file}"


def _user(folder: Path, name: str) -> str:
    """Who runs the server, which no root may be; the folder is theirs."""
    if os.getuid() != 0:
        return getpass.getuser()
    try:
        shutil.chown(folder, name)
    except LookupError:
        pytest.skip(f"there is no user {name}")
    folder.chmod(0o755)
    return name


def _program(name: str) -> str:
    found = shutil.which(name, path=PLACES)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def _run(user: str, name: str, *arguments: str) -> None:
    done = subprocess.run(
        [_program(name), *arguments],
        user=user,
        cwd="/",
        env={"PATH": PLACES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def _running(user: str, connect: Callable[[], Any], name: str, *arguments: str) -> Iterator[None]:
    """A server in the foreground, from when one can connect on."""
    command: Sequence[str] = [_program(name), *arguments]
    process = subprocess.Popen(
        command, user=user, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def answers() -> bool:
        assert process.poll() is None, f"{name} ended at once"
        try:
            connect().close()
        except Exception:  # noqa: BLE001  # each driver has its own
            return False
        return True

    try:
        wait_until(answers, real_seconds=PATIENCE_SECONDS, what=f"{name} to answer")
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
