"""The store: transactions on one cluster's rows, in a SQL database of any make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine, func, inspect, select, union

from shapleyprio.store import migrations, tables
from shapleyprio.store.books import Books, BooksView
from shapleyprio.store.drifts import Drifts, DriftsView
from shapleyprio.store.engine import check_place, file_of, for_reading, make_engine, name_of
from shapleyprio.store.errors import StoreSchemaError, store_errors
from shapleyprio.store.history import History, HistoryView
from shapleyprio.store.leases import Leases, LeaseView
from shapleyprio.store.pushes import Pushes, PushesView
from shapleyprio.store.rows import Revision
from shapleyprio.store.runs import Runs, RunsView


class View(RunsView, BooksView, HistoryView, DriftsView, PushesView, LeaseView):
    """One cluster's rows as they were at one moment, to read."""


class Transaction(Runs, Books, History, Drifts, Pushes, Leases, View):
    """One cluster's rows, to read and to change: all changes are committed together or none."""

    def prune_history(self, before: int, *, pushes_before: int) -> int:
        """Deletes what is older, and returns how many rows.

        The newest cycle of each outcome stays, and so do pushes still planned. What must be
        known to roll back is in the marks, which stay.

        Args:
            before: second, for cycles, standings and drifts.
            pushes_before: second, for pushes.
        """
        return (
            self._prune_cycles(before)
            + self._prune_drifts(before)
            + self._prune_pushes(pushes_before)
        )


class Store:
    """A SQL database with the rows of any number of clusters. Threads may share it.

    Every method raises StoreBusyError when somebody else is writing for too long,
    StoreFullError, StoreUnreachableError, or StoreError for anything else the database reports.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._name = name_of(engine)

    @classmethod
    def open(cls, url: str, *, create: bool = False, any_revision: bool = False) -> Self:
        """Opens a store.

        Args:
            url: as SQLAlchemy has it, such as ``sqlite:////var/lib/shapleyprio/store.db``.
            create: make the tables if the database is empty, and its file if it is missing.
            any_revision: do not look at the tables; for `upgrade` and `revision` only.

        Raises:
            StoreSchemaError: the tables are not those that this release works with.
            StoreUnreachableError: the file or the server cannot be used.
        """
        store = cls(make_engine(url))
        try:
            if not any_revision:
                store._check(create=create)
        except BaseException:
            store.close()
            raise
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """What to call it: its file, or its URL without the password."""
        return self._name

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    def upgrade(self) -> None:
        """Brings the tables to the revision of this release, and makes them if there are none.

        Raises:
            StoreSchemaError: the store was written by a newer release, or is not ours.
        """
        self._check_place(create=True)
        with self._begin() as connection:
            self._check_origin(connection)
            migrations.upgrade(connection)

    def revision(self) -> Revision:
        """The revision the tables are at, and the one this release works with."""
        file = file_of(self._engine)
        if file is not None and not file.exists():
            return Revision(None, migrations.head())
        with self._begin(reading=True) as connection:
            return Revision(migrations.current(connection), migrations.head())

    def clusters(self) -> list[str]:
        """Names of the clusters that have been observed or have a leader."""
        query = union(select(tables.progress.c.cluster), select(tables.lease.c.cluster))
        with self._begin(reading=True) as connection:
            return sorted(connection.execute(query).scalars())

    def sizes(self) -> Mapping[str, int]:
        """Table -> rows, of all clusters together."""
        with self._begin(reading=True) as connection:
            return {
                name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for name, table in tables.metadata.tables.items()
            }

    @contextmanager
    def transaction(self, cluster: str) -> Iterator[Transaction]:
        """Reads and changes a cluster's rows; commits at the end, undoes all on an exception.

        Writers wait for each other at the start, up to 5 s on SQLite. Database errors turn into
        StoreErrors at the end, so catch them around the ``with``.
        """
        with self._begin() as connection:
            yield Transaction(connection, cluster)

    @contextmanager
    def reading(self, cluster: str) -> Iterator[View]:
        """Reads a cluster's rows as they are at one moment, without waiting for a writer."""
        with self._begin(reading=True) as connection:
            yield View(connection, cluster)

    @contextmanager
    def _begin(self, *, reading: bool = False) -> Iterator[Connection]:
        """The one place where transactions begin and end and errors get their names."""
        with store_errors(self._name), self._engine.connect() as plain:
            connection = for_reading(plain) if reading else plain
            with connection.begin():
                yield connection

    def _check_place(self, *, create: bool) -> None:
        file = file_of(self._engine)
        if file is not None:
            check_place(file, create=create)

    def _check(self, *, create: bool) -> None:
        self._check_place(create=create)
        with self._begin(reading=True) as connection:
            self._check_origin(connection)
            revision = migrations.current(connection)
        if revision is None and create:
            self.upgrade()
        elif revision != migrations.head():
            raise StoreSchemaError(
                f"store {self._name}: its tables are at revision {revision or 'none'}, this release"
                f" works with {migrations.head()}; run `shapleyprio db upgrade`"
            )

    def _check_origin(self, connection: Connection) -> None:
        revision = migrations.current(connection)
        if revision is None:
            names = set(inspect(connection).get_table_names()) - {"alembic_version"}
            if names:
                raise StoreSchemaError(
                    f"store {self._name}: it has tables of something else"
                    f" ({', '.join(sorted(names)[:3])}); give the store a database of its own"
                )
        elif not migrations.is_known(revision):
            raise StoreSchemaError(
                f"store {self._name}: a newer release wrote it (revision {revision}, this release"
                f" works with {migrations.head()}); install that release"
            )
