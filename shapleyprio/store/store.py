"""The store: a SQL database of any make, opened, checked and upgraded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import RLock
from typing import Self

from sqlalchemy import Connection, Engine, func, inspect, select

from shapleyprio.common.databases import secrets_of
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store import migrations, tables
from shapleyprio.store.cluster_store import ClusterStore
from shapleyprio.store.engine import (
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
    StoreHalfMadeError,
    StoreSchemaError,
    store_errors,
)
from shapleyprio.store.schema import metadata


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

    def revision(self) -> str | None:
        """Returns the revision that the tables are at; None if there are none yet.

        Raises:
            StoreSchemaError: as for `upgrade`.
        """
        file = file_of(self._engine)
        if file is not None and not file.exists():
            return None
        return self._origin()

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
                for name, table in metadata.tables.items()
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
                f"store {self._name}: it has {disguised} where shapleyprio has only plain tables;"
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
                    f"store {self._name}: it has tables of another program"
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
