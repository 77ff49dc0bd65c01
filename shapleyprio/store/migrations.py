"""Brings a store's tables to the revision that this release works with."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

import shapleyprio

_UPGRADING = Lock()
"""Alembic keeps what it works on in variables of its modules, one upgrade's at a time."""


def scripts() -> Path:
    """Where the migrations are: in the package, or in a checkout at its root."""
    package = Path(shapleyprio.__file__).parent
    for place in (package / "sql", package.parent / "sql"):
        if (place / "env.py").is_file():
            return place
    raise FileNotFoundError(f"{package / 'sql'} is missing: install shapleyprio anew")


def head() -> str:
    """The revision that this release works with."""
    revision = ScriptDirectory(str(scripts())).get_current_head()
    assert revision is not None
    return revision


def current(connection: Connection) -> str | None:
    """The revision of the tables, None if they were never made by a migration."""
    return MigrationContext.configure(connection).get_current_revision()


def is_known(revision: str) -> bool:
    """Whether this release has that revision, which a newer release's store is not at."""
    try:
        return ScriptDirectory(str(scripts())).get_revision(revision) is not None
    except CommandError:
        return False


def upgrade(connection: Connection) -> None:
    """Runs the missing migrations inside the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _UPGRADING:
        command.upgrade(config, "head")
