"""Several processes begin with the same empty database."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, inspect, text

from shapleyprio.common.databases import database_url
from shapleyprio.store import Store, migrations
from shapleyprio.store.errors import StoreHalfMadeError
from tests.store.servers import KINDS

if TYPE_CHECKING:
    from tests.store.servers import Databases

OPENS = (
    "import sys\n"
    "from shapleyprio.store import Store\n"
    "print('ready', flush=True)\n"
    "sys.stdin.readline()\n"
    "with Store.open(sys.argv[1], create=True) as store:\n"
    "    print(store.revision())\n"
)
PROCESSES = 3
SECONDS = 120


@pytest.mark.parametrize("kind", KINDS)
def test_one_makes_the_tables_and_the_others_use_them(databases: Databases, kind: str) -> None:
    with databases.empty(kind) as url:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", OPENS, url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(PROCESSES)
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        said = [process.communicate(timeout=SECONDS)[0] for process in processes]
    assert said == [f"{migrations.HEAD}\n"] * PROCESSES


@pytest.mark.parametrize("kind", KINDS)
def test_tables_that_are_not_all_there_are_named_so(databases: Databases, kind: str) -> None:
    """MariaDB keeps each table that was made before an interruption."""
    with databases.empty(kind) as url:
        Store.open(url, create=True).close()
        engine = create_engine(database_url(url))
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM alembic_version"))
        names = inspect(engine).get_table_names()
        for create in (False, True):
            with pytest.raises(StoreHalfMadeError, match="its tables are not all there"):
                Store.open(url, create=create)
        assert inspect(engine).get_table_names() == names
        engine.dispose()
