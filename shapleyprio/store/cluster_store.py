"""One cluster's rows: what is read at one moment, what is changed together, and what is copied."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, delete, func, insert, select, type_coerce
from sqlalchemy.types import NullType
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_random,
)

from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store import migrations, tables
from shapleyprio.store.engine import BUSY_SECONDS, make_engine
from shapleyprio.store.errors import StoreConflictError, store_errors
from shapleyprio.store.repositories.estimates import (
    Estimates,
    EstimatesView,
    Forecasts,
    ForecastsView,
)
from shapleyprio.store.repositories.history import History, HistoryView
from shapleyprio.store.repositories.leases import Leases, LeasesView
from shapleyprio.store.repositories.ledgers import Ledgers, LedgersView, Pools, PoolsView
from shapleyprio.store.repositories.observed import Observations, ObservationsView
from shapleyprio.store.repositories.orders import AdminOrders, AdminOrdersView
from shapleyprio.store.repositories.pushes import Pushes, PushesView
from shapleyprio.store.repositories.runs import Runs, RunsView
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


MOST_TRIES = 5
"""So often a transaction is begun that the database undoes for the sake of others."""

TRIES_SECONDS = 2 * BUSY_SECONDS
"""It is not restarted when it was first begun so many seconds ago."""

LONGEST_PAUSE_SECONDS = 0.2
"""Chance lets clusters that were in each other's way wait for up to so long."""

Result = TypeVar("Result")


class View:
    """One cluster's rows as they were at one moment, to read.

    Attributes:
        cluster: name of the ledger, which is the cluster's unless it is split.
        ledger: entries, watermark, corrections, who holds what.
        runs: what ran, with its allocations.
        observed: what cycles observed of the cluster.
        pools: the cluster's stay in one, and what all clusters of one have found.
        estimates: of contributions.
        forecasts: of when jobs will start.
        pushes: writes into Slurm, and what stood there before.
        orders: what admins ordered.
        history: of cycles and of what steered.
        lease: of the process that steers.
    """

    def __init__(self, connection: Connection, cluster: str) -> None:
        self.cluster = cluster
        self.ledger = LedgersView(connection, cluster)
        self.runs = RunsView(connection, cluster)
        self.observed = ObservationsView(connection, cluster)
        self.pools = PoolsView(connection, cluster)
        self.estimates = EstimatesView(connection, cluster)
        self.forecasts = ForecastsView(connection, cluster)
        self.pushes = PushesView(connection, cluster)
        self.orders = AdminOrdersView(connection, cluster)
        self.history = HistoryView(connection, cluster)
        self.lease = LeasesView(connection, cluster)


class Transaction(View):
    """One cluster's rows, to read and to change: all changes are committed together or none."""

    def __init__(self, connection: Connection, cluster: str) -> None:
        super().__init__(connection, cluster)
        self.ledger: Ledgers = Ledgers(connection, cluster)
        self.runs: Runs = Runs(connection, cluster)
        self.observed: Observations = Observations(connection, cluster)
        self.pools: Pools = Pools(connection, cluster)
        self.estimates: Estimates = Estimates(connection, cluster)
        self.forecasts: Forecasts = Forecasts(connection, cluster)
        self.pushes: Pushes = Pushes(connection, cluster)
        self.orders: AdminOrders = AdminOrders(connection, cluster)
        self.history: History = History(connection, cluster)
        self.lease: Leases = Leases(connection, cluster)

    def prune_history(self, before: int, *, pushes_before: int) -> int:
        """Deletes what is older, `PRUNED_AT_ONCE` of each kind; returns how many rows.

        The newest cycle of each outcome stays, and so do pushes still planned. What must be
        known to roll back is in the managed values, which stay.

        Args:
            before: second, for all but pushes.
            pushes_before: second, for pushes.
        """
        return (
            self.history.prune(before)
            + self.orders.prune(before)
            + self.estimates.prune(before)
            + self.forecasts.prune(before)
            + self.pushes.prune(pushes_before)
            + self.observed.prune_quarantined(before)
            + self.runs.prune_work_after_end(before)
        )


class _Begin(Protocol):
    def __call__(self, *, reading: bool = False) -> AbstractContextManager[Connection]: ...


class Fence(Protocol):
    """Keeps a process from writing that may not, or may not any more."""

    def begin(self, lease: Leases) -> Callable[[], None]:
        """Checks within a transaction, before all else, that its process may write.

        Returns:
            what to call once the transaction is committed.
        """

    def check(self) -> float:
        """Checks the same for what is about to be written somewhere else than into the store.

        Returns:
            for how many seconds no other process will be let through.
        """


class ClusterStore:
    """One cluster's rows in a store, as `Store.cluster` binds them. Threads may share it.

    Attributes:
        cluster: its name; of a cluster that pools split, that of one of its ledgers.
        conflicts: how often `transact` has retried a transaction.
    """

    def __init__(
        self, begin: _Begin, store_name: str, cluster: str, fence: Fence | None = None
    ) -> None:
        self._begin = begin
        self._store_name = store_name
        self._fence = fence
        self.cluster = cluster
        self.conflicts = 0

    def fenced(self, fence: Fence) -> ClusterStore:
        """Returns the same rows, with a fence before each transaction."""
        return ClusterStore(self._begin, self._store_name, self.cluster, fence)

    def ledger(self, name: str) -> ClusterStore:
        """Returns the rows of one of the cluster's ledgers, behind the same fence."""
        return ClusterStore(self._begin, self._store_name, name, self._fence)

    def check(self) -> float:
        """Returns for how many seconds only we may write for the cluster, here or in Slurm.

        It raises what the fence raises if we may not.
        """
        return math.inf if self._fence is None else self._fence.check()

    def transact(self, work: Callable[[Transaction], Result]) -> Result:
        """Does work in a transaction, again while the database undoes it for the sake of others.

        Args:
            work: reads and changes the rows. What else it changes it must be able to change twice.

        Returns:
            what the work returns, once that is committed.

        Raises:
            StoreConflictError: others were in the way every time.
            StoreError: as the class says; so what the fence and the work raise.
        """

        def once() -> Result:
            with self.transaction() as transaction:
                return work(transaction)

        def count(state: RetryCallState) -> None:
            import structlog  # a quarter of the start of a worker, for what is rare

            self.conflicts += 1
            why = state.outcome and state.outcome.exception()
            log = structlog.get_logger(__name__)
            log.info("a transaction is retried", cluster=self.cluster, why=str(why))

        retrying = Retrying(
            retry=retry_if_exception_type(StoreConflictError),
            stop=stop_after_attempt(MOST_TRIES) | stop_after_delay(TRIES_SECONDS),
            wait=wait_random(0, LONGEST_PAUSE_SECONDS),
            before_sleep=count,
            reraise=True,
        )
        return retrying(once)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Reads and changes the rows; commits at the end, undoes all on an exception.

        Writers wait for each other at the start, at most 5 s; `transact` does more for them.
        Database errors turn into StoreErrors at the end, so catch them around the ``with``. What
        the fence raises passes.
        """
        committed: Callable[[], None] | None = None
        with self._begin() as connection:
            transaction = Transaction(connection, self.cluster)
            if self._fence is not None:
                committed = self._fence.begin(transaction.lease)
            yield transaction
        if committed is not None:
            committed()

    @contextmanager
    def reading(self) -> Iterator[View]:
        """Reads the rows as they are at one moment, without waiting for a writer."""
        with self._begin(reading=True) as connection:
            yield View(connection, self.cluster)

    def copy(self, file: Path, ledgers: Collection[str]) -> None:
        """Makes a SQLite store of what steering the cluster goes on from; no one waits for it.

        A SQLite store is copied as a whole but for leases. Of a server's are copied the cluster's
        ledger, its managed values and open pushes, and of its history the newest cycle and
        standings.

        Args:
            file: to be made.
            ledgers: names of those of the cluster that are wanted.

        Raises:
            StoreError: either cannot be used, or the file's disk is full.
        """
        name = f"{file}, a copy of {self._store_name} (TMPDIR says where it is made)"
        with self._begin(reading=True) as connection:
            copy(connection, ledgers, file, name)
