"""The connection to the database, set so that a kill -9 or a power cut loses nothing."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from shapleyprio.databases import database_url, extra_with, shown_url
from shapleyprio.store.errors import StoreBusyError, StoreError, StoreUnreachableError

BUSY_SECONDS = 5.0
PRAGMAS = (
    "PRAGMA journal_mode = WAL",  # readers and the writer do not wait for each other
    "PRAGMA synchronous = FULL",  # what is committed survives a power cut
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_size_limit = 67108864",  # bytes; the log shrinks back after a large import
)


def make_engine(url: str, *, read_only: bool = False) -> Engine:
    """Makes the engine for a URL; does not connect yet.

    Args:
        url: as SQLAlchemy has it.
        read_only: do with the right to read; nothing is changed, and SQLite makes no file.

    Raises:
        StoreError: the URL cannot be used.
    """
    try:
        parsed = database_url(url)
        if parsed.get_backend_name() == "sqlite":
            return _sqlite_to_read(parsed) if read_only else _sqlite(parsed)
        # several processes may write: a transaction sees all it reads unchanged until it commits
        return create_engine(parsed, isolation_level="SERIALIZABLE", pool_pre_ping=True)
    except ArgumentError as error:
        raise StoreError("the store's URL cannot be read; a file is sqlite:////its/path") from error
    except ImportError as error:
        raise StoreError(f"the store's URL needs {_missing(error)}") from error


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
    make a new log beside it, so the file is taken for one that nobody changes; if somebody does,
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
