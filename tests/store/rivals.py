"""Another connection that locks rows in the opposite order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from sqlalchemy import select, text

from shapleyprio.lab.testbed.processes import wait_until
from shapleyprio.store import Transaction, tables
from tests.store.examples import placed_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from sqlalchemy import Table

    from shapleyprio.store import Leases, Store
    from shapleyprio.store.cluster_store import Fence

WAITING = {
    "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted",
    "mariadb": "SELECT variable_value FROM information_schema.global_status"
    " WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'",
}
"""Kind of server -> how many wait for a lock."""

PATIENCE = {
    "postgresql": ["SET LOCAL lock_timeout = '60s'", "SET LOCAL deadlock_timeout = '60s'"],
    "mariadb": ["SET SESSION innodb_lock_wait_timeout = 60"],
}
"""Kind of server -> with which of its statements a rival waits until the other one is undone."""

WORK = 200
"""Rows that a rival has written: MariaDB undoes the transaction that has done less."""


class Rival:
    """A transaction that locks a cluster's rows, and then waits for its lease's row.

    As a fence it stands in the way of the first transaction since it was armed, which has that row,
    and will need the others: the server undoes that one.

    Args:
        store: on a server.
        cluster: whose rows.
        behind: the fence that gives a sign of life first.

    Attributes:
        met: how many transactions it stood in the way of.
    """

    def __init__(self, store: Store, cluster: str, behind: Fence) -> None:
        self.met = 0
        self._store = store
        self._kind = store._engine.dialect.name
        self._cluster = cluster
        self._behind = behind
        self._armed: Table | None = None
        self._rows_locked: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1)

    def arm(self, table: Table) -> None:
        """Stands in the way of the next transaction, by the rows that the cluster has there."""
        self._armed = table

    def end(self) -> None:
        """Waits until it has got all that it wanted; raises if the server undid it instead."""
        self._thread.shutdown()
        if self._rows_locked is not None:
            self._rows_locked.result()

    def begin(self, lease: Leases) -> Callable[[], None]:
        """Stands in the way, if armed, of a transaction that has just got the lease's row.

        Those after it begin when the rival has ended: one that got the lease's row before a rival
        that the server has woken up, but not yet run, would be undone a second time.
        """
        if self._rows_locked is not None:
            self._rows_locked.result(timeout=60)
        committed = self._behind.begin(lease)
        if self._armed is not None:
            table, self._armed = self._armed, None
            self.met += 1
            self._rows_locked = self._thread.submit(self._lock, table)
            wait_until(self._waits, real_seconds=60, what="the rival to wait for the lease")
        return committed

    def check(self) -> float:
        """Asks the fence before it."""
        return self._behind.check()

    def _lock(self, table: Table) -> None:
        with self._store._begin() as connection:
            for statement in PATIENCE[self._kind]:
                connection.execute(text(statement))
            Transaction(connection, "rival").runs.put([placed_run(n) for n in range(WORK)])
            for each in (table, tables.lease):
                rows = select(each).where(each.c.cluster == self._cluster)
                assert connection.execute(rows.with_for_update()).all()

    def _waits(self) -> bool:
        assert self._rows_locked is not None
        if self._rows_locked.done():
            self._rows_locked.result()
        with self._store._begin() as connection:
            return int(connection.execute(text(WAITING[self._kind])).scalar_one()) > 0
