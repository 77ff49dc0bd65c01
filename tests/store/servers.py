"""Private database servers for tests, each in a directory of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, make_url

from shapleyprio.common.databases import database_url
from shapleyprio.lab.testbed.processes import wait_until
from shapleyprio.store import Store
from shapleyprio.store.schema import metadata

PLACES = os.pathsep.join(
    [*map(str, Path("/usr/lib/postgresql").glob("*/bin")), "/usr/sbin", os.environ["PATH"]]
)
PATIENCE_SECONDS = 60.0
ENDING = {"postgres": signal.SIGINT, "mariadbd": signal.SIGTERM}
"""Program -> by what it ends without waiting for the connections to it."""


SERVERS = [pytest.param(kind, marks=pytest.mark.real_server) for kind in ("postgresql", "mariadb")]
"""Kinds of servers, as parameters of tests and fixtures."""

KINDS = ["sqlite", *SERVERS]
"""Kinds of databases, as parameters of tests and fixtures."""

on_each_server = pytest.mark.parametrize("store", SERVERS, indirect=True)
on_each_database = pytest.mark.parametrize("store", KINDS, indirect=True)
"""Of tests with a `store` that is otherwise where `--store` says."""


def url_of(store: Store) -> str:
    """Where another process finds it."""
    return store._engine.url.render_as_string(hide_password=False)


def file_of(url: str) -> Path:
    """The file of a store in SQLite."""
    return Path(url.removeprefix("sqlite:///"))


def _in_memory() -> str:
    """Where files of SQLite are fastest: each of its transactions waits for the disk."""
    memory = Path("/dev/shm")
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    return str(memory) if roomy else "/tmp"


HELD = {
    "sqlite": ["BEGIN IMMEDIATE"],
    "postgresql": ["BEGIN", "LOCK TABLE {} IN EXCLUSIVE MODE"],
    "mariadb": ["LOCK TABLES {} READ"],
}
"""Kind of database -> how one connection keeps all others from writing, but not from reading."""


@contextmanager
def held_by_another(store: Store) -> Iterator[None]:
    """Another process keeps everybody from writing."""
    kind = store._engine.dialect.name
    # each transaction of a daemon begins with its lease, so this one waits there for its end
    names = sorted(metadata.tables, key=lambda name: name != "lease")
    tables = (" READ, " if kind == "mariadb" else ", ").join(names)
    engine = create_engine(store._engine.url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with engine.connect() as connection:
        for statement in HELD[kind]:
            connection.exec_driver_sql(statement.format(tables))
        yield


class _Compiled(dict[Any, Any]):
    """Statements of all engines, each of which would compile them anew for its own dialect."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), compiled)


_COMPILED = _Compiled()


@event.listens_for(Engine, "engine_connect")
def _compile_once(connection: Connection) -> None:
    connection.execution_options(compiled_cache=_COMPILED)


class Databases:
    """Databases of each kind; servers are private ones, and started when first asked for."""

    def __init__(self) -> None:
        self._started = ExitStack()
        self._running: dict[str, Server] = {}
        self._template: str | None = None
        self._unused: dict[str, list[str]] = {}
        self._numbers = count(1)

    def close(self) -> None:
        """Stops the servers."""
        self._started.close()

    @contextmanager
    def empty(self, kind: str) -> Iterator[str]:
        """URL of a database without tables, as people type it; skips where there is no server.

        Args:
            kind: ``sqlite``, ``postgresql`` or ``mariadb``.
        """
        if kind == "sqlite":
            with tempfile.TemporaryDirectory(prefix="store-", dir=_in_memory()) as folder:
                yield f"sqlite:///{folder}/store.db"
            return
        server = self._server(kind)
        name = f"shapleyprio{next(self._numbers)}"
        server.execute(f"CREATE DATABASE {name}")
        yield make_url(server.url).set(database=name).render_as_string(hide_password=False)
        server.execute(f"DROP DATABASE {name}{' WITH (FORCE)' if kind == 'postgresql' else ''}")

    @contextmanager
    def made(self, kind: str) -> Iterator[str]:
        """URL of an empty store of this release; migrations run once for all of them.

        In SQLite each is a copy, on a server one that a test before has left is emptied.
        """
        if kind == "sqlite":
            self._template = self._template or self._make(kind)
            with self.empty(kind) as url:
                shutil.copy(file_of(self._template), file_of(url))
                yield url
            return
        unused = self._unused.setdefault(kind, [])
        url = unused.pop() if unused else self._make(kind)
        yield url
        engine = create_engine(database_url(url), poolclass=NullPool)
        with engine.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(table.delete())
        unused.append(url)

    @contextmanager
    def store(self, kind: str) -> Iterator[Store]:
        """The same, opened."""
        with self.made(kind) as url, Store.open(url) as store:
            yield store

    def _make(self, kind: str) -> str:
        url = self._started.enter_context(self.empty(kind))
        Store.open(url, create=True).close()
        return url

    def kill(self, kind: str) -> None:
        """Kills the server with SIGKILL, and starts it again on what it has left."""
        self._running[kind].kill()
        self._running[kind].start()

    def _server(self, kind: str) -> Server:
        if kind not in self._running:
            # not where a test has its files: the server's user gets there, and its socket's path
            # is short
            place = tempfile.TemporaryDirectory(prefix="store-", dir="/tmp")
            folder = Path(self._started.enter_context(place))
            self._running[kind] = self._started.enter_context(private_server(kind, folder))
        return self._running[kind]


class Server:
    """A server in the foreground.

    Args:
        url: of its own database.
        user: who runs it.
        connect: makes a connection to it.
        command: starts it.
    """

    def __init__(self, url: str, user: str, connect: Callable[[], Any], *command: str) -> None:
        self.url = url
        self._user = user
        self._connect = connect
        self._command = (_program(command[0]), *command[1:])
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self) -> Iterator[Server]:
        try:
            self.start()
            yield self
        finally:
            if self._process is not None:
                self._process.send_signal(ENDING[Path(self._command[0]).name])
                self._process.wait(PATIENCE_SECONDS)
                self._dismiss()

    def start(self) -> None:
        """Starts it, and waits until one can connect; after a kill, until nothing is left of it."""
        wait_until(
            self._answers, real_seconds=PATIENCE_SECONDS, what=f"{self._command[0]} to answer"
        )

    def execute(self, *statements: str) -> None:
        """Its administrator does something."""
        engine = create_engine(
            database_url(self.url), isolation_level="AUTOCOMMIT", poolclass=NullPool
        )
        with engine.connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)

    def _dismiss(self) -> None:
        """Ends the guard, whose server has ended."""
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command,
                user=self._user,
                cwd="/",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self._dismiss()
            # its input ends with this process, however that ends
            guarding = f"read -r _; kill -KILL {self._process.pid}"
            self._guard = subprocess.Popen(
                ["sh", "-c", guarding], stdin=subprocess.PIPE, start_new_session=True
            )
        try:
            self._connect().close()
        except Exception:  # noqa: BLE001  # each driver has its own
            return False
        return True


def private_server(kind: str, folder: Path) -> AbstractContextManager[Server]:
    """Runs a server whose data are in a folder; skips where it is not installed.

    Args:
        kind: ``postgresql`` or ``mariadb``.
        folder: empty; that of whoever runs the server from then on.
    """
    return {"postgresql": _postgresql, "mariadb": _mariadb}[kind](folder)


@contextmanager
def _postgresql(folder: Path, superuser: str = "shapleyprio") -> Iterator[Server]:
    psycopg = pytest.importorskip("psycopg")
    user = _user(folder, "postgres")
    data = str(folder / "data")
    access = ("-U", superuser, "-A", "trust", "-E", "UTF8")
    _run(user, "initdb", "-D", data, *access, "--no-sync", "--wal-segsize=1")
    options = ("-c", "listen_addresses=", "-c", "fsync=off", "-k", str(folder))
    place = {"host": str(folder), "user": superuser, "dbname": "postgres"}
    url = f"postgresql://{superuser}@/postgres?host={folder}"
    command = ("postgres", "-D", data, *options)
    with Server(url, user, lambda: psycopg.connect(**place), *command).running() as server:
        yield server


@contextmanager
def _mariadb(folder: Path) -> Iterator[Server]:
    pymysql = pytest.importorskip("pymysql")
    user = _user(folder, "mysql")
    with tempfile.TemporaryDirectory(prefix="store-", dir="/tmp") as temporary:
        # it tidies this one up when it starts: none to share, and none on a disk that may be full
        _user(Path(temporary), "mysql")
        small = ("--innodb-autoextend-increment=1", "--innodb-log-file-size=8M")
        place = ("--no-defaults", f"--datadir={folder / 'data'}", f"--tmpdir={temporary}", *small)
        own = ("--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
        _run(user, "mariadb-install-db", *place, *own)
        file = folder / "socket"
        options = (f"--socket={file}", "--skip-networking", f"--pid-file={folder / 'pid'}")
        unsafe = ("--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync")
        access = {"unix_socket": str(file), "user": "root"}
        url = f"mariadb://root@localhost/mysql?unix_socket={file}"
        command = ("mariadbd", *place, *options, *unsafe)
        with Server(url, user, lambda: pymysql.connect(**access), *command).running() as server:
            yield server


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
