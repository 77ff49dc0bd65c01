"""The connection to the database, set so that a kill -9 or a power cut loses nothing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, NullPool
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from shapleyprio.common.databases import (
    DatabaseUrlError,
    database_url,
    extra_with,
    hide,
    secrets_of,
    shown_url,
)
from shapleyprio.store.errors import StoreBusyError, StoreError, StoreUnreachableError

BUSY_SECONDS = 5.0
"""Seconds for which a lock, or a connection to a server, is waited for."""

IDLE_SECONDS = 10
"""A server ends a transaction whose process has asked nothing for so long: it may be frozen."""

STATEMENT_SECONDS = 30
"""A server ends a statement of a process that writes after that time."""

SILENT_SECONDS = 2 * STATEMENT_SECONDS
"""A MariaDB that says nothing for so long is away."""

PRAGMAS = (
    "PRAGMA journal_mode = WAL",  # readers and the writer do not wait for each other
    "PRAGMA synchronous = FULL",  # what is committed survives a power cut
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_size_limit = 67108864",  # bytes; the log shrinks back after a large import
)


def make_engine(url: str, *, read_only: bool = False, patient: bool = False) -> Engine:
    """Makes the engine for a URL; does not connect yet.

    Args:
        url: as SQLAlchemy has it.
        read_only: do with the right to read; nothing is changed, and SQLite makes no file.
        patient: let a server's statements take as long as they do, as those of migrations.

    Raises:
        StoreError: the URL cannot be used.
    """
    try:
        parsed = database_url(url)
        if parsed.get_backend_name() == "sqlite":
            if parsed.query:
                raise StoreError(
                    f"store {shown_url(parsed)}: a file takes no query; leave out ?..."
                )
            return _sqlite_to_read(parsed) if read_only else _sqlite(parsed)
        with _understood(parsed):
            return _server(parsed, read_only=read_only, patient=read_only or patient)
    except DatabaseUrlError as error:
        raise StoreError(f"the store's URL: {error}") from error
    except ImportError as error:
        raise StoreError(f"the store's URL needs {_missing(error)}") from error


def connected(engine: Engine) -> Connection:
    """Connects to the database.

    Raises:
        StoreError: the driver does not know a key of the URL's query, or its value.
    """
    with _understood(engine.url):
        return engine.connect()


@contextmanager
def _understood(url: URL) -> Iterator[None]:
    """Turns what drivers raise where they do not understand a URL's query into a StoreError."""
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:  # the first of an unknown charset
        reason = hide(secrets_of(url), str(error).partition("\n")[0])
        raise StoreError(f"store {shown_url(url)}: its query cannot be used: {reason}") from error


def _missing(error: ImportError) -> str:
    """Says in one line what a driver lacks, and how to get it."""
    name = (error.name or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError):
        extra = extra_with(name)
        remedy = f": pip install 'shapleyprio[{extra}]'" if extra else ""
        return f"the Python package {name}{remedy}"
    # psycopg without its own library looks for the system's
    return "PostgreSQL's library: install libpq5 (libpq), or pip install 'shapleyprio[postgresql]'"


def for_reading(connection: Connection) -> Connection:
    """Returns the same connection, whose transactions see one moment and wait for no writer."""
    if connection.dialect.name == "sqlite":
        return connection.execution_options(reading=True)
    return connection.execution_options(isolation_level="REPEATABLE READ")


def file_of(engine: Engine) -> Path | None:
    """Returns the file of a SQLite store; None for a server or for memory."""
    database = engine.url.database
    if engine.dialect.name != "sqlite" or not database or database == ":memory:":
        return None
    return Path(database)


def name_of(engine: Engine) -> str:
    """Names the store for messages: its file, or its URL without secrets."""
    file = file_of(engine)
    return shown_url(engine.url) if file is None else str(file)


def check_place(file: Path, *, create: bool) -> None:
    """Checks that the file can be used, for SQLite itself does not say what is wrong.

    Raises:
        StoreUnreachableError: it cannot; the message says what is missing.
    """
    directory = file.absolute().parent
    if not directory.is_dir():
        raise StoreUnreachableError(f"store {file}: the directory {directory} does not exist")
    if not file.exists() and not create:
        raise StoreUnreachableError(
            f"store {file}: there is no such file; run `shapleyprio db upgrade`"
        )
    if not os.access(directory, os.W_OK | os.X_OK):
        raise StoreUnreachableError(
            f"store {file}: the directory {directory} must be writable, for SQLite's log"
        )
    if file.exists() and not os.access(file, os.R_OK | os.W_OK):
        raise StoreUnreachableError(f"store {file}: the file must be readable and writable")


def is_there(file: Path) -> bool:
    """Returns whether the file exists.

    Raises:
        StoreUnreachableError: this cannot be found out, or it may not be read.
    """
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreUnreachableError(f"store {file}: {error.strerror}") from error
    if not os.access(file, os.R_OK):
        raise StoreUnreachableError(f"store {file}: the file must be readable")
    return True


def _sqlite_to_read(url: URL) -> Engine:
    """Reads a file without a lock that writers wait for, and without a trace.

    While somebody has the file open, its log is there to read along. Else even a reader would
    make a new log beside it, so the file is taken for one that does not change; if it does,
    what was read is not to be trusted and the transaction fails.
    """
    engine = create_engine(url, poolclass=NullPool)
    file = Path(url.database or "")

    @event.listens_for(engine, "do_connect")
    def connect(
        _dialect: object, entry: ConnectionPoolEntry, _arguments: object, _options: object
    ) -> sqlite3.Connection:
        states = _states(file)
        is_open = any(states[1:])
        entry.info["states"] = None if is_open else states
        how = "mode=ro" if is_open else "mode=ro&immutable=1"
        return sqlite3.connect(
            f"{file.absolute().as_uri()}?{how}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
        )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    @event.listens_for(engine, "commit")
    def verify(connection: Connection) -> None:
        if connection.info["states"] not in (None, _states(file)):
            raise StoreBusyError(f"store {file}: it was changed while it was read; try again")

    return engine


def _states(file: Path) -> list[tuple[int, int, int] | None]:
    """Returns what differs after a change of a SQLite file or its logs; None for a missing file."""
    states: list[tuple[int, int, int] | None] = []
    for suffix in ("", "-wal", "-journal"):
        try:
            status = Path(f"{file}{suffix}").stat()
        except FileNotFoundError:
            states.append(None)
        else:
            states.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return states


def _server(url: URL, *, read_only: bool, patient: bool) -> Engine:
    """Connects to a server so that neither side keeps the other waiting for good.

    A cluster's rows are written under its lease alone, whose row is locked as long as that takes.
    So a transaction that sees what is committed sees all it reads unchanged, and any stricter
    isolation would only let clusters get in each other's way.
    """
    options = {
        name: value
        for name, value in _CONNECTING.get(url.get_driver_name(), {}).items()
        if name not in url.query
    }
    engine = create_engine(
        url, isolation_level="READ COMMITTED", pool_pre_ping=True, connect_args=options
    )

    @event.listens_for(engine, "connect")
    def limit(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        statements = _limits(engine, patient=patient)
        if read_only:
            statements.append(_READING[engine.dialect.name])
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        cursor.close()
        connection.commit()

    return engine


_READING = {
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
}
"""Kind of server -> how a session gives up the right to write."""

_LIBPQ = {
    "connect_timeout": int(BUSY_SECONDS),
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": IDLE_SECONDS * 1000,
}
_MYSQL = {
    "connect_timeout": int(BUSY_SECONDS),
    "read_timeout": SILENT_SECONDS,
    "write_timeout": SILENT_SECONDS,
}
_CONNECTING: Mapping[str, Mapping[str, int]] = {
    "psycopg": _LIBPQ,
    "pymysql": _MYSQL,
}
"""Driver -> how it finds out that a server is not there any more, unless the URL says otherwise."""


def _limits(engine: Engine, *, patient: bool) -> list[str]:
    """Returns the statements that limit how long a session may wait, and keep others waiting."""
    if engine.dialect.name == "postgresql":
        return [
            f"SET lock_timeout = '{BUSY_SECONDS * 1000:.0f}ms'",
            f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'",
            f"SET statement_timeout = '{0 if patient else STATEMENT_SECONDS}s'",
        ]
    lock = int(BUSY_SECONDS)
    return [
        f"SET SESSION innodb_lock_wait_timeout = {lock}",
        f"SET SESSION lock_wait_timeout = {lock}",
        f"SET SESSION idle_transaction_timeout = {IDLE_SECONDS}",
        f"SET SESSION max_statement_time = {0 if patient else STATEMENT_SECONDS}",
    ]


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        # turning the log on does not wait for other processes as everything else does
        patiently = Retrying(
            retry=retry_if_exception_type(sqlite3.OperationalError),
            wait=wait_fixed(0.02),
            stop=stop_after_delay(BUSY_SECONDS),
            reraise=True,
        )
        for pragma in PRAGMAS:
            patiently(connection.execute, pragma)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # a writer takes the lock before it reads, so that what it read is still so when it writes
        reading = connection.get_execution_options().get("reading", False)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine
