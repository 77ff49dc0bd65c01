"""Brings a store's tables to the revision that this release works with."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from threading import Lock

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import ColumnElement, Connection, column, exists, inspect, table

from shapleyprio.common.shipped import find
from shapleyprio.store.tables import metadata

_version = table("alembic_version", column("version_num"))

_UPGRADING = Lock()
"""Alembic keeps what it works on in variables of its modules, one upgrade's at a time."""


def scripts() -> Path:
    """Returns the folder of the migrations."""
    return find("sql")


def head() -> str:
    """Returns the revision that this release works with."""
    revision = _directory().get_current_head()
    assert revision is not None
    return revision


def current(connection: Connection) -> str | None:
    """Returns the revision of the tables, None if no migration ever made them."""
    return MigrationContext.configure(connection).get_current_revision()


def are_current() -> ColumnElement[bool]:
    """Returns the condition, for a statement, that the tables are those of this release."""
    return exists().where(_version.c.version_num == head())


def is_known(revision: str) -> bool:
    """Returns whether this release has that revision.

    It lacks those of newer releases, and those of test versions before the first release.
    """
    try:
        return _directory().get_revision(revision) is not None
    except CommandError:
        return False


def misfit(connection: Connection) -> str | None:
    """Returns a table without exactly the columns that this release works with; None if all fit.

    Until the first release migrations were changed in place, so the revision alone proves nothing.
    """
    found = inspect(connection).get_multi_columns(filter_names=list(metadata.tables))
    for name, expected in metadata.tables.items():
        if {column["name"] for column in found.get((None, name), ())} != set(expected.c.keys()):
            return name
    return None


@cache
def _directory() -> ScriptDirectory:
    """Reads the migrations once: they are those of the release that runs."""
    return ScriptDirectory(str(scripts()))


def upgrade(connection: Connection) -> None:
    """Runs the missing migrations inside the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _UPGRADING:
        command.upgrade(config, "head")
