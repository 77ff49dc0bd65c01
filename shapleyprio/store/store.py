"""The store: transactions on one cluster's rows, in a SQL database of any make."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import RLock
from typing import Protocol, Self, TypeVar

import structlog
from sqlalchemy import Connection, Engine, func, inspect, select
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_random,
)

from shapleyprio.common.databases import secrets_of
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store import copying, migrations, tables
from shapleyprio.store.engine import (
    BUSY_SECONDS,
    check_place,
    connected,
    file_of,
    for_reading,
    is_there,
    make_engine,
    name_of,
)
from shapleyprio.store.errors import (
    StoreBusyError,
    StoreConflictError,
    StoreHalfMadeError,
    StoreSchemaError,
    store_errors,
)
from shapleyprio.store.repositories.estimates import Estimates, EstimatesView
from shapleyprio.store.repositories.forecasts import Forecasts, ForecastsView
from shapleyprio.store.repositories.history import History, HistoryView
from shapleyprio.store.repositories.leases import Leases, LeasesView
from shapleyprio.store.repositories.ledgers import Ledgers, LedgersView
from shapleyprio.store.repositories.observed import Observations, ObservationsView
from shapleyprio.store.repositories.orders import AdminOrders, AdminOrdersView
from shapleyprio.store.repositories.pools import Pools, PoolsView
from shapleyprio.store.repositories.pushes import Pushes, PushesView
from shapleyprio.store.repositories.runs import Runs, RunsView
from shapleyprio.store.rows import Revision

MOST_TRIES = 5
"""So often a transaction is begun that the database undoes for the sake of others."""

TRIES_SECONDS = 2 * BUSY_SECONDS
"""It is not restarted when it was first begun so many seconds ago."""

LONGEST_PAUSE_SECONDS = 0.2
"""Chance lets clusters that were in each other's way wait for up to so long."""

Result = TypeVar("Result")

log = structlog.get_logger(__name__)


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
            self.conflicts += 1
            why = state.outcome and state.outcome.exception()
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
            copying.copy(connection, ledgers, file, name)


class Store:
    """A SQL database with the rows of any number of clusters. Threads may share it.

    Every method raises StoreBusyError when somebody else is writing for too long,
    StoreFullError, StoreUnreachableError, or StoreError for anything else the database reports.
    """

    def __init__(self, engine: Engine, called: str | None = None) -> None:
        self._engine = engine
        self._name = called or name_of(engine)
        self._secrets = secrets_of(engine.url)
        # writers of SQLite wait by asking again and again, which no clock must cut short here
        self._turn: AbstractContextManager[object] = (
            RLock() if engine.dialect.name == "sqlite" else nullcontext()
        )

    @classmethod
    def open(
        cls,
        url: str,
        *,
        create: bool = False,
        any_revision: bool = False,
        called: str | None = None,
    ) -> Self:
        """Opens a store.

        Args:
            url: as SQLAlchemy has it, such as ``sqlite:////var/lib/shapleyprio/store.db``.
            create: make the tables if the database is empty, and its file if it is missing.
            any_revision: do not look at the tables; for `upgrade` and `revision` only.
            called: what to call it, where its own name would tell people nothing.

        Raises:
            StoreSchemaError: the tables are not those that this release works with.
            StoreUnreachableError: the file or the server cannot be used.
        """
        store = cls(make_engine(url, patient=any_revision), called)
        try:
            if not any_revision:
                store._check(create=create)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_existing(cls, url: str) -> Self | None:
        """Opens a store to read only; the right to read is enough, and nothing is left behind.

        Args:
            url: as for `open`.

        Returns:
            None if there is none yet: no file, or a database without tables.

        Raises:
            StoreSchemaError: the tables are not those that this release works with.
            StoreUnreachableError: the file or the server cannot be used.
        """
        store = cls(make_engine(url, read_only=True))
        try:
            if not store._has_tables():
                store.close()
                return None
        except BaseException:
            store.close()
            raise
        return store

    @staticmethod
    def name_of(url: str) -> str:
        """Names a store at the URL, be there one or not."""
        return name_of(make_engine(url))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """What to call it: its file, or its URL without secrets."""
        return self._name

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    def upgrade(self) -> None:
        """Brings the tables to the revision of this release, and makes them if there are none.

        Raises:
            StoreSchemaError: a newer release or a test version wrote the store, or it is not ours.
        """
        self._check_place(create=True)
        with self._begin() as connection, self._alone(connection):
            self._check_origin(connection)
            migrations.upgrade(connection)

    def revision(self) -> Revision:
        """Returns the revision the tables are at, and the one this release works with.

        Raises:
            StoreSchemaError: as for `upgrade`.
        """
        file = file_of(self._engine)
        if file is not None and not file.exists():
            return Revision(None, migrations.HEAD)
        return Revision(self._origin(), migrations.HEAD)

    def clusters(self) -> list[str]:
        """Returns the names of the clusters that have been observed or have a leader.

        Of one that pools split, those of its ledgers instead, such as ``c1/gpu``.
        """
        with self._begin(reading=True) as connection:
            observed = set(connection.execute(select(tables.watermark.c.cluster)).scalars())
            led = set(connection.execute(select(tables.lease.c.cluster)).scalars())
        return sorted(observed | led - set(map(cluster_behind, observed)))

    def sizes(self) -> Mapping[str, int]:
        """Returns table -> rows, of all clusters together."""
        with self._begin(reading=True) as connection:
            return {
                name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for name, table in tables.metadata.tables.items()
            }

    def cluster(self, name: str) -> ClusterStore:
        """Returns the rows of a cluster or of one of its ledgers; they need not be there yet."""
        return ClusterStore(self._begin, self._name, name)

    @contextmanager
    def _begin(self, *, reading: bool = False) -> Iterator[Connection]:
        """Begins and ends every transaction, and gives errors their names, in this one place."""
        turn = nullcontext() if reading else self._turn
        with turn, store_errors(self._name, self._secrets), connected(self._engine) as plain:
            connection = for_reading(plain) if reading else plain
            with connection.begin():
                yield connection

    @contextmanager
    def _alone(self, connection: Connection) -> Iterator[None]:
        try:
            with migrations.alone(connection):
                yield
        except TimeoutError:
            raise StoreBusyError(
                f"store {self._name}: another process is upgrading its tables; try again"
            ) from None

    def _check_place(self, *, create: bool) -> None:
        file = file_of(self._engine)
        if file is not None:
            check_place(file, create=create)

    def _has_tables(self) -> bool:
        """Returns whether there are tables, which must be those of this release."""
        if self._engine.dialect.name == "sqlite":
            file = file_of(self._engine)
            if file is None or not is_there(file):
                return False
        revision = self._origin()
        if revision is not None:
            self._check_revision(revision)
        return revision is not None

    def _check(self, *, create: bool) -> None:
        self._check_place(create=create)
        try:
            revision = self._origin()
        except StoreHalfMadeError:
            if not create:
                raise
            revision = None
        if revision is None and create:
            self.upgrade()
        else:
            self._check_revision(revision)

    def _origin(self) -> str | None:
        """Returns the tables' revision, None if there are no tables at all."""
        with self._begin(reading=True) as connection:
            return self._check_origin(connection)

    def _check_revision(self, revision: str | None) -> None:
        if revision != migrations.HEAD:
            raise StoreSchemaError(
                f"store {self._name}: its tables are at revision {revision or 'none'}, this release"
                f" works with {migrations.HEAD}; run `shapleyprio db upgrade`"
            )

    def _check_origin(self, connection: Connection) -> str | None:
        """Returns the revision of tables that are a store's; None if there are no tables at all."""
        if disguised := migrations.disguised(connection):
            raise StoreSchemaError(
                f"store {self._name}: it has {disguised} where shapleyprio has plain tables alone;"
                " do not trust this file, or drop that if it is yours"
            )
        revision = migrations.current(connection)
        if revision is None:
            names = set(inspect(connection).get_table_names()) - {"alembic_version"}
            if names and migrations.is_half_made(connection):
                raise StoreHalfMadeError(
                    f"store {self._name}: its tables are not all there: another process is making"
                    " them, so try again; if one was interrupted, give the store an empty database"
                )
            if names:
                raise StoreSchemaError(
                    f"store {self._name}: it has tables of something else"
                    f" ({', '.join(sorted(names)[:3])}); give the store a database of its own"
                )
        elif revision not in migrations.REVISIONS:
            raise StoreSchemaError(
                f"store {self._name}: a newer release wrote it, or a test version before the first"
                f" (revision {revision}, this release works with {migrations.HEAD}); install the"
                " newer release, or give the store an empty database"
            )
        elif revision == migrations.HEAD and (misfit := migrations.misfit(connection)):
            raise StoreSchemaError(
                f"store {self._name}: a test version before the first release wrote it (other"
                f" columns in {misfit} than at revision {revision}); give the store an empty"
                " database"
            )
        return revision
