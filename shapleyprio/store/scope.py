"""The parts that all views of a cluster's rows share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Delete,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
)

from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store import tables

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

KEYS_AT_ONCE = 500  # well below any database's limit of variables
ROWS_AT_ONCE = 5000
PRUNED_AT_ONCE = 10_000
"""Rows of one kind that a transaction prunes: a server needs some seconds for them."""

OF_CLUSTERS = frozenset(
    (
        tables.configuration,
        tables.lease,
        tables.pause,
        tables.push,
        tables.managed_value,
        tables.published_points,
    )
)
"""Tables with one set of rows for all ledgers of a cluster: who may write into its Slurm, by which
configuration, whether anybody is to, and the values there, whichever ledger the job counts in."""


def of_cluster(table: Table, cluster: str) -> ColumnElement[bool]:
    """Returns the condition of the rows of all ledgers of a cluster."""
    ledger = table.c.cluster
    return (ledger == cluster) | ledger.startswith(f"{cluster}/", autoescape=True)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cuts items into lists of at most the given size."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def columns(table: Table) -> list[ColumnElement[Any]]:
    """Returns all columns but the cluster, each called as the field of a record that it holds."""
    return [
        column if column.name == column.key else column.label(column.key)
        for column in table.c
        if column.key != "cluster"
    ]


def values_of(row: DataclassInstance) -> dict[str, Any]:
    """Returns field -> value; `dataclasses.asdict` copies every value, too slow for many rows."""
    return {field: getattr(row, field) for field in row.__dataclass_fields__}


class Scope:
    """The rows of one ledger and its cluster, inside one transaction.

    Attributes:
        cluster: name of the ledger, which is the cluster's unless it is split.
    """

    def __init__(self, connection: Connection, cluster: str) -> None:
        self.cluster = cluster
        self._connection = connection

    def _here(self, table: Table) -> ColumnElement[bool]:
        return _rows_of(table, self._key(table))

    def _key(self, table: Table) -> str:
        """Returns the name under which a table has the rows: the values in Slurm are not split."""
        return cluster_behind(self.cluster) if table in OF_CLUSTERS else self.cluster

    def _rows(self, table: Table, *conditions: ColumnElement[bool]) -> Select[Any]:
        """Selects rows, as far as they meet the conditions."""
        return select(*columns(table)).where(self._here(table), *conditions)

    def _last(self, column: Column[int], *conditions: ColumnElement[bool]) -> int:
        """Returns the largest value in these rows; 0 without any."""
        query = select(func.max(column)).where(self._here(column.table), *conditions)
        return self._connection.execute(query).scalar() or 0

    def _clear(self, table: Table, *conditions: ColumnElement[bool]) -> int:
        """Deletes these rows; returns how many."""
        return self._connection.execute(
            delete(table).where(self._here(table), *conditions)
        ).rowcount

    def _read_one(self, kind: Callable[..., T], query: Select[Any]) -> T | None:
        """Returns the record of the first row; None if there is none."""
        return next(iter(self._read(kind, query)), None)

    def _read(self, kind: Callable[..., T], query: Select[Any]) -> list[T]:
        """Returns one record for each row, its fields named as the columns."""
        return [kind(**row) for row in self._connection.execute(query).mappings()]

    def _insert(self, table: Table, rows: Iterable[dict[str, Any]]) -> None:
        """Inserts rows, without their cluster; few at a time, for they take much memory so."""
        key = self._key(table)
        for some in batches(rows, KEYS_AT_ONCE):
            for row in some:
                row["cluster"] = key
            self._connection.execute(insert(table), some)

    def _delete(self, table: Table, keys: list[dict[str, Any]]) -> None:
        """Deletes the rows with these keys: column -> value, the same columns in each."""
        if keys:
            cluster = self._key(table)
            self._connection.execute(
                _deletion(table, ("cluster", *keys[0])),
                [
                    {f"key_{name}": value for name, value in {"cluster": cluster, **key}.items()}
                    for key in keys
                ],
            )

    def _delete_some(
        self, table: Table, condition: ColumnElement[bool], by: ColumnElement[Any]
    ) -> int:
        """Deletes `PRUNED_AT_ONCE` of the rows that meet a condition; returns how many.

        Args:
            table: of the rows.
            condition: what they have to meet.
            by: the lowest of this column go; more than so many may have the same.
        """
        last = self._of_some(table, condition, by)
        return self._clear(table, condition if last is None else condition & (by <= last))

    def _of_some(
        self, table: Table, condition: ColumnElement[bool], by: ColumnElement[Any]
    ) -> Any | None:
        """Returns the value of the last row that `_delete_some` deletes; None if it leaves none."""
        query = select(by).where(self._here(table), condition).order_by(by)
        return self._connection.execute(query.offset(PRUNED_AT_ONCE - 1).limit(1)).scalar()

    def _replace(self, table: Table, rows: Iterable[dict[str, Any]]) -> None:
        """Inserts rows in place of those with the same primary keys."""
        names = [column.key for column in table.primary_key if column.key != "cluster"]
        for some in batches(rows, KEYS_AT_ONCE):
            self._delete(table, [{name: row[name] for name in names} for row in some])
            self._insert(table, some)


# to put an expression together takes as long as to send it


@cache
def _rows_of(table: Table, cluster: str) -> ColumnElement[bool]:
    return table.c.cluster == cluster


@cache
def _deletion(table: Table, names: tuple[str, ...]) -> Delete:
    """Deletes rows by the columns of these names, each from a parameter named `key_` and it."""
    return delete(table).where(*(table.c[name] == bindparam(f"key_{name}") for name in names))
