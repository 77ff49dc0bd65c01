"""Copies what steering a cluster goes on from, without keeping anybody from writing meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, func, insert, select, type_coerce
from sqlalchemy.types import NullType

from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store import migrations, tables
from shapleyprio.store.engine import make_engine
from shapleyprio.store.errors import store_errors
from shapleyprio.store.rows.pushes import PushState
from shapleyprio.store.schema import metadata
from shapleyprio.store.scope import ROWS_AT_ONCE, of_cluster

PAGES_AT_ONCE = 4096
"""Pages of a file that are copied before signals are answered."""


def copy(source: Connection, ledgers: Collection[str], file: Path, name: str) -> None:
    """Makes a SQLite store; see `Store.copy` for what is in it.

    Args:
        source: in a transaction that reads, whose moment the copy shows.
        ledgers: names of those that are wanted, all of one cluster.
        file: to be made.
        name: what to call the copy in messages.

    Raises:
        StoreError: the copy cannot be written.
    """
    driver = source.connection.driver_connection
    engine = make_engine(f"sqlite:///{file}")
    try:
        if isinstance(driver, sqlite3.Connection):
            with store_errors(name), closing(sqlite3.connect(file)) as target:
                driver.backup(target, pages=PAGES_AT_ONCE, progress=lambda *_: None)
            with store_errors(name), engine.begin() as connection:
                connection.execute(delete(tables.lease))
        else:
            with store_errors(name), engine.begin() as connection:
                migrations.upgrade(connection)
            for table, rows in _rows(source, ledgers):
                with store_errors(name), engine.begin() as connection:
                    statement = insert(table).compile(dialect=connection.dialect)
                    connection.exec_driver_sql(str(statement), rows)
    finally:
        engine.dispose()


def _rows(
    source: Connection, ledgers: Collection[str]
) -> Iterator[tuple[Table, list[tuple[Any, ...]]]]:
    """Yields tables and some of their rows; rows that others refer to come before these.

    The values are those of the database, which all have the same types: to make Python's of them
    and back would take three times as long.
    """
    cluster = cluster_behind(next(iter(ledgers)))
    wanted = [dict(_wanted(cluster)), *(dict(_wanted_of(ledger)) for ledger in ledgers)]
    for table in metadata.sorted_tables:
        for conditions in (each[table] for each in wanted if table in each):
            rows = source.execution_options(yield_per=ROWS_AT_ONCE).execute(
                select(*(type_coerce(column, NullType()) for column in table.c)).where(*conditions)
            )
            for some in rows.partitions():
                yield table, [tuple(row) for row in some]


def _wanted(cluster: str) -> Iterator[tuple[Table, list[ColumnElement[Any]]]]:
    """Yields tables, and the conditions of a cluster's rows and those of pools."""
    push = tables.push
    for table in (tables.managed_value, tables.published_points, tables.pause):
        yield table, [table.c.cluster == cluster]
    yield tables.exception, [of_cluster(tables.exception, cluster)]
    yield tables.balance, []
    yield push, [push.c.cluster == cluster, push.c.state == PushState.PLANNED]


def _wanted_of(ledger: str) -> Iterator[tuple[Table, list[ColumnElement[Any]]]]:
    """Yields tables, and the conditions of a ledger's rows."""
    standing, cycle = tables.standing, tables.cycle
    ranked = select(func.max(standing.c.cycle)).where(standing.c.cluster == ledger)
    last = select(func.max(cycle.c.number)).where(cycle.c.cluster == ledger)
    newest_standings, newest = ranked.scalar_subquery(), last.scalar_subquery()
    accounted = (tables.run, tables.allocation, tables.ledger, tables.tenure, tables.watermark)
    in_pool = (tables.stay, tables.earlier_ledger)
    estimated_from = (tables.capacity, tables.sampling, tables.kept_back)
    over_time = (tables.steering, tables.node, tables.account)
    for table in (*accounted, *in_pool, *estimated_from, *over_time):
        yield table, [table.c.cluster == ledger]
    yield standing, [standing.c.cluster == ledger, standing.c.cycle == newest_standings]
    yield (
        cycle,
        [cycle.c.cluster == ledger, cycle.c.number.in_([newest_standings, newest])],
    )
