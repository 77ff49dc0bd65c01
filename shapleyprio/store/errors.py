"""The errors of the store, and the one place that makes them of a driver's errors."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from shapleyprio.common.databases import hide
from shapleyprio.common.errors import KnownError


class StoreError(KnownError):
    """The store failed to answer or to do something; the message is one line for the admin."""

    exit_code = 4


class StoreBusyError(StoreError):
    """Somebody else is writing to the store: nothing was changed, try again later."""


class StoreConflictError(StoreBusyError):
    """The database rolled a transaction back because of another one; it can be retried."""


class StoreFullError(StoreError):
    """The store or its disk is full: nothing was changed."""


class StoreSchemaError(StoreError):
    """The tables are not those that this release works with."""


class StoreHalfMadeError(StoreSchemaError):
    """Some tables are there, and the others may follow."""


class StoreUnreachableError(StoreError):
    """The file cannot be opened or written, or the server is away."""


_Kind = type[StoreError]

_FULL_DISK = "it is full; free some space on its disk"
_SQLITE: dict[int, tuple[_Kind, str]] = {
    sqlite3.SQLITE_BUSY: (StoreBusyError, "another process is writing to it"),
    sqlite3.SQLITE_LOCKED: (StoreBusyError, "another connection is writing to it"),
    sqlite3.SQLITE_FULL: (StoreFullError, _FULL_DISK),
    sqlite3.SQLITE_IOERR_SHMSIZE: (StoreFullError, _FULL_DISK),
    sqlite3.SQLITE_CANTOPEN: (StoreUnreachableError, "it cannot be opened; check its permissions"),
    sqlite3.SQLITE_READONLY: (StoreUnreachableError, "it cannot be written; check its permissions"),
    sqlite3.SQLITE_PERM: (StoreUnreachableError, "access is denied; check its permissions"),
    sqlite3.SQLITE_IOERR: (StoreUnreachableError, "its disk does not work, or a quota is used up"),
    sqlite3.SQLITE_CORRUPT: (StoreError, "the file is damaged; restore it from a backup"),
    sqlite3.SQLITE_NOTADB: (StoreError, "the file is not a SQLite database"),
}

_BUSY, _FULL = "a concurrent transaction is in the way", "the server's disk is full"
_SLOW = "the server took too long"
_READ_ONLY = "it cannot be written, for the server or the session is read-only"
_IDLE = "the server ended a transaction in which nothing happened"
_POSTGRESQL: dict[str, tuple[_Kind, str]] = {  # SQLSTATE
    "40001": (StoreConflictError, _BUSY),
    "40P01": (StoreConflictError, _BUSY),
    "55P03": (StoreBusyError, _BUSY),
    "57014": (StoreBusyError, _SLOW),
    "25P03": (StoreBusyError, _IDLE),
    "53100": (StoreFullError, _FULL),
    "25006": (StoreUnreachableError, _READ_ONLY),
}
_MARIADB: dict[int, tuple[_Kind, str]] = {  # error number
    1020: (StoreConflictError, _BUSY),
    1205: (StoreConflictError, _BUSY),
    1213: (StoreConflictError, _BUSY),
    1969: (StoreBusyError, _SLOW),
    4031: (StoreBusyError, _IDLE),
    1021: (StoreFullError, _FULL),
    1114: (StoreFullError, _FULL),
    1290: (StoreUnreachableError, _READ_ONLY),
    1792: (StoreUnreachableError, _READ_ONLY),
}
_NO_ROOM = ("No space left on device", "No more room in record file")
"""What servers say in the text of several errors, such as that a file cannot be made."""


@contextmanager
def store_errors(name: str, secrets: Collection[str] = ()) -> Iterator[None]:
    """Turns every database error raised inside into a StoreError.

    Args:
        name: what to call the store in messages (a file, or a URL without secrets).
        secrets: what the URL holds, and no message may repeat.
    """
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        kind, reason = _diagnosis(error)
        raise kind(f"store {name}: {hide(secrets, reason)}") from error


def _diagnosis(error: SQLAlchemyError | sqlite3.Error) -> tuple[_Kind, str]:
    if isinstance(error, PoolTimeoutError):
        return StoreBusyError, "all connections to it are in use"
    if not isinstance(error, (DBAPIError, sqlite3.Error)):
        return StoreError, _first_line(error)
    cause = error.orig if isinstance(error, DBAPIError) else error
    kind, hint = _known(cause)
    message = _first_line(cause)
    if hint:
        return kind, f"{hint} ({message})"
    if (
        isinstance(error, DBAPIError)
        and not isinstance(cause, sqlite3.Error)
        and (isinstance(error, OperationalError) or error.connection_invalidated)
    ):
        return StoreUnreachableError, f"the server cannot be used ({message})"
    return StoreError, message


def _known(cause: BaseException | None) -> tuple[_Kind, str]:
    nothing = (StoreError, "")
    if isinstance(cause, sqlite3.Error):
        # the lowest byte is the primary code; Python itself raises some errors without any
        code = getattr(cause, "sqlite_errorcode", 0)
        return _SQLITE.get(code, _SQLITE.get(code & 0xFF, nothing))
    state = getattr(cause, "sqlstate", None)
    if isinstance(state, str) and state in _POSTGRESQL:
        return _POSTGRESQL[state]
    number = cause.args[0] if cause is not None and cause.args else None
    if isinstance(number, int) and number in _MARIADB:
        return _MARIADB[number]
    return (StoreFullError, _FULL) if any(text in str(cause) for text in _NO_ROOM) else nothing


def _first_line(error: BaseException | None) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
