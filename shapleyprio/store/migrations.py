"""Brings a store's tables to the revision that this release works with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from sqlalchemy import ColumnElement, Connection, column, exists, func, inspect, select, table
from sqlalchemy.exc import SQLAlchemyError

from shapleyprio.common.shipped import find
from shapleyprio.store.schema import metadata

REVISIONS = ("0001",)
"""Those of the migrations, the oldest first. A store of another one is not ours to read."""

HEAD = REVISIONS[-1]
"""The revision that this release works with."""

_version = table("alembic_version", column("version_num"))

_FIELDS = (
    "SELECT a.name, field.name FROM sqlite_master AS a JOIN pragma_table_info(a.name) AS field"
    " WHERE a.type = 'table' AND a.rootpage > 0"
)
"""Table and column, for every table in a file of SQLite."""

_PROGRAMS = (
    "SELECT type, name, lower(tbl_name) FROM sqlite_master"
    " WHERE type IN ('view', 'trigger') OR rootpage = 0 ORDER BY type, name"
)
"""What such a file has that runs, and of which table it is."""

ALONE_SECONDS = 20
"""Less than a server gives a statement. To make all tables takes a second or two."""

_KEY = 7_427_533
"""Names the lock on a server; any number would do."""

_UPGRADING = Lock()
"""Alembic keeps what it works on in variables of its modules, one upgrade's at a time."""


def scripts() -> Path:
    """Returns the folder of the migrations."""
    return find("sql")


def current(connection: Connection) -> str | None:
    """Returns the revision of the tables, None if no migration ever made them."""
    if not inspect(connection).has_table(_version.name):
        return None
    revision: str | None = connection.execute(select(_version.c.version_num)).scalar()
    return revision


def are_current() -> ColumnElement[bool]:
    """Returns the condition, for a statement, that the tables are those of this release."""
    return exists().where(_version.c.version_num == HEAD)


def misfit(connection: Connection) -> str | None:
    """Returns a table without exactly the columns that this release works with; None if all fit.

    Until the first release migrations were changed in place, so the revision alone proves nothing.
    """
    found = _columns(connection)
    for name, expected in metadata.tables.items():
        if found[name] != {column.name for column in expected.c}:
            return name
    return None


def _columns(connection: Connection) -> Mapping[str, set[str]]:
    """Returns the names of the columns that each table of ours has."""
    found: dict[str, set[str]] = {name: set() for name in metadata.tables}
    if connection.dialect.name == "sqlite":
        # SQLAlchemy would ask twice for each table, which takes longer than all else here
        for name, field in connection.exec_driver_sql(_FIELDS):
            if name in found:
                found[name].add(field)
        return found
    columns = inspect(connection).get_multi_columns(filter_names=list(found))
    for (_, name), described in columns.items():
        found[name].update(column["name"] for column in described)
    return found


def disguised(connection: Connection) -> str | None:
    """Returns what a SQLite file has where a table of ours is expected, such as "the view run".

    A view or virtual table is a program of whoever made the file, and may have no end; a trigger
    is one that runs when a row is written. None if all are tables. A server's are its admin's.
    """
    if connection.dialect.name != "sqlite":
        return None
    for kind, name, of in connection.exec_driver_sql(_PROGRAMS):
        if of in metadata.tables or of == _version.name:
            return f"the {'virtual table' if kind == 'table' else kind} {name}"
    return None


@contextmanager
def alone(connection: Connection) -> Iterator[None]:
    """Keeps other processes from migrating the same database until the end.

    In SQLite a transaction that writes does so. A server's tables may be made by two at once, and
    MariaDB commits after each of them.

    Args:
        connection: in a transaction; what others have committed before is seen from here on.

    Raises:
        TimeoutError: others take too long.
    """
    kind = connection.dialect.name
    if kind == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{ALONE_SECONDS}s'")
        connection.execute(select(func.pg_advisory_xact_lock(_KEY)))
    if kind in {"postgresql", "sqlite"}:
        yield
        return
    name = func.concat(f"shapleyprio {_KEY} ", func.md5(func.database()))
    if connection.execute(select(func.get_lock(name, ALONE_SECONDS))).scalar() != 1:
        raise TimeoutError
    try:
        yield
        connection.exec_driver_sql("COMMIT")  # who comes next must see which revision this is
    finally:
        with suppress(SQLAlchemyError):  # with its connection, the server forgets the lock
            connection.execute(select(func.release_lock(name)))


def is_half_made(connection: Connection) -> bool:
    """Returns whether tables are being made, or were until an interruption."""
    return current(connection) is None and inspect(connection).has_table(_version.name)


def upgrade(connection: Connection) -> None:
    """Runs the missing migrations inside the connection's transaction."""
    # 0.15 s, which every command would take, and none but those that make tables need
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _UPGRADING:
        command.upgrade(config, "head")
