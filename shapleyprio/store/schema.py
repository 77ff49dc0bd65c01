"""What tables are made of, in types that mean the same on SQLite, PostgreSQL and MariaDB."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    Dialect,
    False_,
    ForeignKeyConstraint,
    Index,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeEngine

T = TypeVar("T")


class LongText(Text):
    """A text of more than MariaDB's 64 KiB, which are 4,000 nodes."""


@compiles(LongText, "mysql", "mariadb")
def _medium(*_: object, **__: object) -> str:
    return "MEDIUMTEXT"  # the dialect's own class would load the dialect at each start


class ExactInteger(TypeDecorator[int]):
    """An integer beyond 64 bits, as decimal text: no database rounds it."""

    impl = String(48)
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Writes decimal digits."""
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Reads decimal digits."""
        return None if value is None else int(value)


class Words(TypeDecorator[str]):
    """Text from outside: cut to its length, and what no database takes is escaped."""

    impl = String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Makes the text fit."""
        if value is None or (value.isascii() and len(value) <= self.length and "\0" not in value):
            return value
        encodable = value.encode("utf-8", "backslashreplace").decode("utf-8")
        return encodable.replace("\0", "\\x00")[: self.length]


_to_json = json.JSONEncoder(separators=(",", ":")).encode  # json.dumps makes one for every row


class _Json(TypeDecorator[T]):
    """A value as JSON."""

    impl = Text()

    def process_bind_param(self, value: T | None, dialect: Dialect) -> str:  # noqa: ARG002
        """Writes JSON."""
        return _to_json(self.plain(value))

    def process_result_value(self, value: str | None, dialect: Dialect) -> T:  # noqa: ARG002
        """Reads JSON."""
        return self.made_of(json.loads(value or "[]"))

    def plain(self, value: T | None) -> object:
        """Returns what json.dumps takes."""
        return value or ()

    def made_of(self, plain: Any) -> T:
        """Returns the value again."""
        raise NotImplementedError


class JsonMapping(_Json[Mapping[str, Any]]):
    """Name -> number."""

    impl = LongText()
    cache_ok = True

    def plain(self, value: Mapping[str, Any] | None) -> object:
        """Returns a dict."""
        return dict(value or {})

    def made_of(self, plain: Any) -> dict[str, Any]:
        """Returns the dict."""
        return dict(plain)


class Several(_Json[tuple[Any, ...]]):
    """A few integers or names."""

    cache_ok = True

    def made_of(self, plain: Any) -> tuple[Any, ...]:
        """Returns a tuple."""
        return tuple(plain)


class Holdings(_Json[tuple[tuple[str, int | None], ...]]):
    """Organizations that held something one after the other, each with its first second."""

    cache_ok = True

    def made_of(self, plain: Any) -> tuple[tuple[str, int | None], ...]:
        """Returns pairs."""
        return tuple((organization, since) for organization, since in plain)


class InPartitions(_Json[Mapping[tuple[str, ...], int]]):
    """Numbers of processors by the partitions that they are in."""

    cache_ok = True

    def plain(self, value: Mapping[tuple[str, ...], int] | None) -> object:
        """Returns pairs, sorted."""
        return sorted((value or {}).items())

    def made_of(self, plain: Any) -> Mapping[tuple[str, ...], int]:
        """Returns the mapping."""
        return {tuple(names): processors for names, processors in plain}


metadata = MetaData()

_FIELDS = {
    "nodes": "processors",
    "partition_name": "partition",
    "released": "release",
    "time_limit": "limit",
}
"""Column of another name than the field of the record that it holds -> the latter, its key here."""


def table(name: str, *contents: list[Column[Any]] | Index | ForeignKeyConstraint) -> Table:
    """Returns a table of `metadata` with rows of many clusters."""
    cluster = Column("cluster", String(64), primary_key=True)
    items = [item for each in contents for item in (each if isinstance(each, list) else [each])]
    return Table(name, metadata, cluster, *items)


def key(kind: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    """Returns columns of the key, beside the cluster."""
    return _columns(kind, names, primary_key=True, autoincrement=False)


def required(
    kind: TypeEngine[Any], *names: str, default: str | False_ | None = None
) -> list[Column[Any]]:
    """Returns columns that have a value in each row.

    Args:
        kind: what they hold.
        names: theirs.
        default: SQL's, for rows of before.
    """
    return _columns(kind, names, nullable=False, server_default=default)


def optional(kind: TypeEngine[Any], *names: str) -> list[Column[Any]]:
    """Returns columns that may lack a value, NULL."""
    return _columns(kind, names, nullable=True)


def _columns(kind: TypeEngine[Any], names: tuple[str, ...], **how: Any) -> list[Column[Any]]:
    return [Column(name, kind, key=_FIELDS.get(name, name), **how) for name in names]
