"""The lease that lets one process at a time write to a cluster's Slurm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, insert, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from shapleyprio.store import migrations
from shapleyprio.store.errors import StoreBusyError, StoreSchemaError
from shapleyprio.store.rows.pushes import LeaseRow
from shapleyprio.store.scope import Scope
from shapleyprio.store.tables import lease

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

NOBODY = ""
"""The holder of a lease that was given back; the row stays, for its token must grow on."""


class _DatabaseSeconds(FunctionElement[int]):
    """Seconds since the epoch by the clock of the database, which all hosts share."""

    type = BigInteger()
    inherit_cache = True


@compiles(_DatabaseSeconds)
def _in_mariadb(*_: object, **__: object) -> str:
    return "UNIX_TIMESTAMP()"


@compiles(_DatabaseSeconds, "postgresql")
def _in_postgresql(*_: object, **__: object) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS BIGINT)"


@compiles(_DatabaseSeconds, "sqlite")
def _in_sqlite(*_: object, **__: object) -> str:
    return "CAST(strftime('%s', 'now') AS INTEGER)"


class LeasesView(Scope):
    """Reads the lease."""

    def read(self) -> LeaseRow | None:
        """Returns the lease as it stands, be it held or not; None if there never was one."""
        age = (_DatabaseSeconds() - lease.c.renewed_at).label("age")
        return self._read_one(LeaseRow, self._rows(lease).add_columns(age))


class Leases(LeasesView):
    """Takes, renews and gives back the lease.

    Each is one statement that names what it takes the lease to be, so of several processes that do
    it at the same time one succeeds. Until its transaction ends, it keeps the others waiting.

    A process of another release than that of the tables neither takes nor renews it: it would write
    what the other release does not expect.
    """

    def take(
        self,
        holder: str,
        host: str,
        pid: int,
        *,
        ttl: int,
        instead_of: LeaseRow | None,
        has_journal: bool = False,
    ) -> int | None:
        """Takes the lease if it still is as it was seen.

        Args:
            holder: a name unique to this process.
            host: where it runs, for people.
            pid: its process there, for people.
            ttl: seconds without a sign of life after which others may take it.
            instead_of: what was seen: a lease that was given back or shows no more life; None if
                there was none.
            has_journal: whether others may not take it even then.

        Returns:
            the new token, or None if the lease has changed since.

        Raises:
            StoreBusyError: another process takes the first lease of all at the same moment.
            StoreSchemaError: the tables are those of another release.
        """
        self._check_release()
        ours: dict[str, Any] = {
            "holder": holder,
            "host": host,
            "pid": pid,
            "since": _DatabaseSeconds(),
            "renewed_at": _DatabaseSeconds(),
            "ttl": ttl,
            "token": 1 if instead_of is None else instead_of.token + 1,
            "beat": 0,
            "has_journal": has_journal,
        }
        if instead_of is None:
            try:
                self._connection.execute(insert(lease).values(cluster=self._key(lease), **ours))
            except IntegrityError as error:
                raise StoreBusyError("another process is taking the lease") from error
            return 1
        taken = self._connection.execute(
            update(lease)
            .where(
                self._here(lease),
                lease.c.holder == instead_of.holder,
                lease.c.token == instead_of.token,
                lease.c.beat == instead_of.beat,
            )
            .values(ours)
        ).rowcount
        return instead_of.token + 1 if taken else None

    def renew(self, holder: str, token: int) -> bool:
        """Gives a sign of life; returns whether the holder still has the lease by that token.

        Until the transaction ends, no other process can take the lease.

        Raises:
            StoreSchemaError: the tables are those of another release.
        """
        renewed = self._change_own(
            holder,
            token,
            {"beat": lease.c.beat + 1, "renewed_at": _DatabaseSeconds()},
            migrations.are_current(),
        )
        if not renewed:
            self._check_release()
        return renewed

    def release(self, holder: str, token: int) -> bool:
        """Gives the lease back if the holder still has it by that token; returns whether."""
        return self._change_own(holder, token, {"holder": NOBODY})

    def _change_own(
        self, holder: str, token: int, values: dict[str, Any], *where: ColumnElement[bool]
    ) -> bool:
        statement = update(lease).where(
            self._here(lease), lease.c.holder == holder, lease.c.token == token, *where
        )
        return bool(self._connection.execute(statement.values(values)).rowcount)

    def _check_release(self) -> None:
        revision = migrations.current(self._connection)
        if revision != migrations.HEAD:
            raise StoreSchemaError(
                f"the store's tables are at revision {revision}, and this release works with "
                f"{migrations.HEAD}: it no longer steers; install the release that upgraded them"
            )
