"""The tables, in types that mean the same on SQLite, PostgreSQL and MariaDB.

Every table is keyed by cluster, so that several clusters share one store. Where pools split a
cluster, the column has the names of its ledgers (``c1/gpu``), but for the value in Slurm, which
is not split. Times are seconds since the epoch. Migrations are under ``sql/``; a test
holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Enum,
    ForeignKeyConstraint,
    Index,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    false,
)
from sqlalchemy.dialects.mysql import MEDIUMTEXT
from sqlalchemy.types import TypeEngine

from shapleyprio.store.rows import PushState

# MariaDB would take names that differ in case for the same
MARIADB: dict[str, Any] = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}


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


class JsonMapping(TypeDecorator[Mapping[str, Any]]):
    """Name -> number, as JSON."""

    impl = Text().with_variant(MEDIUMTEXT(), "mysql", "mariadb")  # 64 KiB are 4,000 nodes
    cache_ok = True

    def process_bind_param(self, value: Mapping[str, Any] | None, dialect: Dialect) -> str:  # noqa: ARG002
        """Writes JSON."""
        return _to_json(dict(value or {}))

    def process_result_value(self, value: str | None, dialect: Dialect) -> dict[str, Any]:  # noqa: ARG002
        """Reads JSON."""
        mapping: dict[str, Any] = json.loads(value or "{}")
        return mapping


class Numbers(TypeDecorator[tuple[int, ...]]):
    """A few integers, as JSON."""

    impl = Text()
    cache_ok = True

    def process_bind_param(self, value: tuple[int, ...] | None, dialect: Dialect) -> str:  # noqa: ARG002
        """Writes JSON."""
        return _to_json(list(value or ()))

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[int, ...]:  # noqa: ARG002
        """Reads JSON."""
        return tuple(json.loads(value or "[]"))


class TextList(TypeDecorator[tuple[str, ...]]):
    """Some names, as JSON."""

    impl = Text()
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> str:  # noqa: ARG002
        """Writes JSON."""
        return _to_json(value or ())

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[str, ...]:  # noqa: ARG002
        """Reads JSON."""
        return tuple(json.loads(value or "[]"))


class Holdings(TypeDecorator[tuple[tuple[str, int | None], ...]]):
    """Organizations that held something one after the other, each with its first second."""

    impl = Text()
    cache_ok = True

    def process_bind_param(
        self,
        value: tuple[tuple[str, int | None], ...] | None,
        dialect: Dialect,  # noqa: ARG002
    ) -> str:
        """Writes JSON."""
        return _to_json(value or ())

    def process_result_value(
        self,
        value: str | None,
        dialect: Dialect,  # noqa: ARG002
    ) -> tuple[tuple[str, int | None], ...]:
        """Reads JSON."""
        return tuple((organization, since) for organization, since in json.loads(value or "[]"))


class InPartitions(TypeDecorator[Mapping[tuple[str, ...], int]]):
    """Numbers of processors by the partitions that they are in."""

    impl = Text()
    cache_ok = True

    def process_bind_param(
        self,
        value: Mapping[tuple[str, ...], int] | None,
        dialect: Dialect,  # noqa: ARG002
    ) -> str:
        """Writes JSON."""
        return _to_json(sorted((value or {}).items()))

    def process_result_value(
        self,
        value: str | None,
        dialect: Dialect,  # noqa: ARG002
    ) -> Mapping[tuple[str, ...], int]:
        """Reads JSON."""
        return {tuple(names): processors for names, processors in json.loads(value or "[]")}


metadata = MetaData()


def _table(name: str, *contents: Column[Any] | Index | ForeignKeyConstraint) -> Table:
    cluster = Column("cluster", String(64), primary_key=True)
    return Table(name, metadata, cluster, *contents, **MARIADB)


def _key(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def _required(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _optional(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind, nullable=True)


_ORGANIZATION = String(64)
_POOL = String(64)
_NAME = String(255)
_CHANNEL = String(32)
_SECOND = BigInteger()
_COUNT = BigInteger()

run = _table(
    "run",
    _key("job_id", BigInteger()),
    _key("submit", _SECOND),
    _key("start", _SECOND),
    _required("label", Words(255)),
    _required("account", Words(255)),
    _required("user", Words(255)),
    _required("state", Words(32)),
    _required("begin", _SECOND),
    _optional("end", _SECOND),
    _optional("paused_at", _SECOND),
    _required("nodes", JsonMapping()),
    Column("released", _SECOND, nullable=False, server_default="0"),
    _optional("time_limit", _SECOND),
    Column("partition_name", Words(255), nullable=False, server_default=""),
    Column("counted", Boolean(), nullable=False, server_default=false()),
    Index("run_by_end", "cluster", "end"),
)

allocation = _table(
    "allocation",
    _key("job_id", BigInteger()),
    _key("submit", _SECOND),
    _key("start", _SECOND),
    _key("number", BigInteger()),
    _required("organization", _ORGANIZATION),
    _required("owner", _ORGANIZATION),
    _required("processors", _COUNT),
    _required("begin", _SECOND),
    _optional("end", _SECOND),
    ForeignKeyConstraint(
        ["cluster", "job_id", "submit", "start"],
        ["run.cluster", "run.job_id", "run.submit", "run.start"],
        name="allocation_of_run",
        ondelete="CASCADE",
    ),
    Index("allocation_by_begin", "cluster", "begin"),
    Index("allocation_by_end", "cluster", "end"),
)


def _ledger(name: str) -> Table:
    return _table(
        name,
        _key("organization", _ORGANIZATION),
        _key("owner", _ORGANIZATION),
        _required("total_processors", ExactInteger()),
        _required("total_first", ExactInteger()),
        _required("total_second", ExactInteger()),
        _required("folded_processors", ExactInteger()),
        _required("folded_first", ExactInteger()),
        _required("folded_second", ExactInteger()),
    )


ledger = _ledger("ledger")
earlier_ledger = _ledger("earlier_ledger")

stay = _table(
    "stay",
    _required("pool", _POOL),
    _required("since", _SECOND),
    _required("clusters", TextList()),
    _required("stale_after", _SECOND),
    _required("consortium", _NAME),
)

balance = _table(
    "balance",
    _key("pool", _POOL),
    _key("since", _SECOND),
    _key("organization", _ORGANIZATION),
    _required("t", _SECOND),
    _required("value", ExactInteger()),
    _required("rate", ExactInteger()),
    _required("acceleration", ExactInteger()),
    _required("denominator", ExactInteger()),
    _required("weight", String(64)),
    Index("balance_by_pool", "pool"),
)

tenure = _table(
    "tenure",
    _key("kind", String(16)),
    _key("name", _NAME),
    _key("number", BigInteger()),
    _required("organization", _ORGANIZATION),
    _optional("since", _SECOND),
    _optional("until", _SECOND),
)

correction = _table(
    "correction",
    _key("number", BigInteger()),
    _key("kind", String(16)),
    _key("name", _NAME),
    _required("at", _SECOND),
    _required("user", Words(255)),
    _required("before", Holdings()),
    _required("after", Holdings()),
)

node = _table(
    "node",
    _key("name", _NAME),
    _key("since", _SECOND),
    _required("processors", _COUNT),
    _required("partitions", TextList()),
)

account = _table(
    "account",
    _key("name", _NAME),
    _key("since", _SECOND),
    _optional("parent", _NAME),
)

capacity = _table(
    "capacity",
    _key("organization", _ORGANIZATION),
    _key("since", _SECOND),
    _required("processors", InPartitions()),
)

watermark = _table(
    "watermark",
    _required("weight", String(64)),
    _required("opened", _SECOND),
    _required("observed_until", _SECOND),
    _required("accounted_to", _SECOND),
    _optional("horizon", _SECOND),
    _required("folded_to", _SECOND),
    _required("pruned_until", _SECOND),
    Column("sure_until", _SECOND, nullable=False, server_default="0"),
    Column("boot", String(64), nullable=False, server_default=""),
    Column("monotonic_time", _SECOND, nullable=False, server_default="0"),
    Column("controller_time", _SECOND, nullable=False, server_default="0"),
    Column("again_at", _SECOND, nullable=False, server_default="0"),
    _optional("again_from", _SECOND),
)

cycle = _table(
    "cycle",
    _key("number", BigInteger()),
    _required("started", _SECOND),
    _required("finished", _SECOND),
    _required("outcome", String(32)),
    _required("t", _SECOND),
    _required("seen", _COUNT),
    _required("kept", _COUNT),
    _required("refused", _COUNT),
    _required("written", _COUNT),
    _required("message", Words(500)),
    _required("seconds", JsonMapping()),
    Column("slurm_version", Words(32), nullable=False, server_default=""),
    Column("rule", Words(32), nullable=False, server_default=""),
    Column("quarantined", _COUNT, nullable=False, server_default="0"),
    _optional("estimated_at", _SECOND),
    Column("missed", _COUNT, nullable=False, server_default="0"),
    Column("adapter", Words(32), nullable=False, server_default=""),
    Column("postponed", _COUNT, nullable=False, server_default="0"),
    Column("of_unknown_accounts", _COUNT, nullable=False, server_default="0"),
    _required("by_hand", JsonMapping()),
    Index("cycle_by_started", "cluster", "started"),
)

configuration = _table(
    "configuration",
    _key("number", BigInteger()),
    _required("at", _SECOND),
    _required("version", Words(64)),
    _required("written", JsonMapping()),
    _required("refused", Words(500)),
)

steering = _table(
    "steering",
    _key("since", _SECOND),
    _required("rule", Words(32)),
    _required("chosen", Words(32)),
    _required("channel", _CHANNEL),
)

accepted_clock = _table(
    "accepted_clock",
    _key("at", _SECOND),
    _required("before", _SECOND),
    _required("ahead", _COUNT),
    _required("user", Words(255)),
)

pause = _table(
    "pause",
    _key("since", _SECOND),
    _required("user", Words(255)),
    _required("reason", Words(500)),
    _required("keep", Boolean()),
    _optional("until", _SECOND),
    _required("resumed_by", Words(255)),
)

exception = _table(
    "exception",
    _key("since", _SECOND),
    _key("job_id", BigInteger()),
    _required("label", Words(255)),
    _required("organization", _ORGANIZATION),
    _required("user", Words(255)),
    _required("reason", Words(500)),
    _required("before_all", Boolean()),
    _optional("until", _SECOND),
    _optional("ended", _SECOND),
    _required("ended_by", Words(255)),
    _required("passed", JsonMapping()),
)

standing = _table(
    "standing",
    _key("cycle", BigInteger()),
    _key("organization", _ORGANIZATION),
    _required("t", _SECOND),
    _required("contribution", ExactInteger()),
    _required("utility", ExactInteger()),
    _required("parts", _COUNT),
    _required("priority", BigInteger()),
    _required("pending", _COUNT),
    _required("running", _COUNT),
    _required("processors", _COUNT),
    Column("reason", Words(500), nullable=False, server_default=""),
    Column("score", ExactInteger(), nullable=False, server_default="0"),
    Column("all_parts", _COUNT, nullable=False, server_default="0"),
    _optional("parent", _ORGANIZATION),
    Index("standing_by_t", "cluster", "t"),
)


drift = _table(
    "drift",
    _key("t", _SECOND),
    _key("organization", _ORGANIZATION),
    _key("schedule", String(16)),
    _required("begin", _SECOND),
    _required("reference", String(16)),
    _required("utility", ExactInteger()),
    _required("fair", ExactInteger()),
    _required("parts", _COUNT),
)


estimate = _table(
    "estimate",
    _key("t", _SECOND),
    _key("organization", _ORGANIZATION),
    _required("begin", _SECOND),
    _required("value", ExactInteger()),
    _required("rate", ExactInteger()),
    _required("acceleration", ExactInteger()),
    _required("denominator", ExactInteger()),
    _required("error", ExactInteger()),
    _required("utility", ExactInteger()),
    _required("alone", ExactInteger()),
    _required("without", ExactInteger()),
    _required("parts", _COUNT),
    _required("coalitions", _COUNT),
)


sampling = _table(
    "sampling",
    _required("seed", BigInteger()),
)


waiting_work = _table(
    "waiting_work",
    _key("number", BigInteger()),
    _required("organization", _ORGANIZATION),
    _required("account", Words(255)),
    _required("user", Words(255)),
    _required("jobs", _COUNT),
    _required("processor_seconds", ExactInteger()),
)


def _forecast() -> list[Column[Any]]:
    """Returns the columns of a forecast but for its key."""
    return [
        _required("organization", _ORGANIZATION),
        *(
            _required(name, _SECOND)
            for name in ("median", "early", "late", "drawn_early", "drawn_late")
        ),
        _required("within_hour", _COUNT),
        _required("waits_for", String(32)),
    ]


start_forecast = _table(
    "start_forecast",
    _key("job_id", BigInteger()),
    _required("t", _SECOND),
    *_forecast(),
)


told_forecast = _table(
    "told_forecast",
    _key("job_id", BigInteger()),
    _key("t", _SECOND),
    *_forecast(),
    _optional("start", _SECOND),
    Index("told_forecast_by_start", "cluster", "start"),
    Index("told_forecast_by_t", "cluster", "t"),
)


pending_jobs = _table(
    "pending_jobs",
    _key("organization", _ORGANIZATION),
    _key("partition_name", Words(255)),
    _required("jobs", _COUNT),
    _required("since", _SECOND),
)


kept_back = _table(
    "kept_back",
    _key("job_id", BigInteger()),
    _optional("counts_since", _SECOND),
    _optional("kept_since", _SECOND),
)


push = _table(
    "push",
    _key("number", BigInteger()),
    _required("cycle", BigInteger()),
    _required("channel", _CHANNEL),
    _required("target", Text()),
    _required("key", _NAME),
    _required("organization", _ORGANIZATION),
    _required("label", Words(255)),
    _required("original", BigInteger()),
    _required("old", BigInteger()),
    _required("new", BigInteger()),
    _required("reason", Words(500)),
    _required("state", Enum(PushState, native_enum=False, length=32, values_callable=list)),
    _required("note", Words(500)),
    _required("at", _SECOND),
    Index("push_by_key", "cluster", "key", "number"),
    Index("push_by_state", "cluster", "state"),
    Index("push_by_at", "cluster", "at"),
)

work_after_end = _table(
    "work_after_end",
    _key("job_id", BigInteger()),
    _key("submit", _SECOND),
    _key("start", _SECOND),
    _required("organization", _ORGANIZATION),
    _required("account", Words(255)),
    _required("user", Words(255)),
    _required("end", _SECOND),
    _required("processor_seconds", _COUNT),
    Index("work_after_end_by_end", "cluster", "end"),
)

work_after_end_progress = _table(
    "work_after_end_progress",
    _required("until", _SECOND),
)

managed_value = _table(
    "managed_value",
    _key("channel", _CHANNEL),
    _key("key", _NAME),
    _required("original", BigInteger()),
    _required("written", Numbers()),
    _optional("by_hand", BigInteger()),
)

published_points = _table(
    "published_points",
    _required("path", Text()),
    _required("given", Numbers()),
    _optional("since", _SECOND),
    _optional("until", _SECOND),
)

quarantined_line = _table(
    "quarantined_line",
    _key("digest", String(64)),
    _required("source", String(64)),
    _required("text", Words(2000)),
    _required("reason", Words(500)),
    _required("first_seen", _SECOND),
    _required("last_seen", _SECOND),
    _required("times", _COUNT),
    Index("quarantined_line_by_last_seen", "cluster", "last_seen"),
)

lease = _table(
    "lease",
    _required("holder", _NAME),
    _required("host", _NAME),
    _required("pid", BigInteger()),
    _required("since", _SECOND),
    _required("renewed_at", _SECOND),
    _required("ttl", _SECOND),
    _required("token", BigInteger()),
    _required("beat", BigInteger()),
    Column("has_journal", Boolean(), nullable=False, server_default=false()),
)
