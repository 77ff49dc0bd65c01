"""The tables.

Every table is keyed by cluster, so that several clusters share one store. Where pools split a
cluster, the column has the names of its ledgers (``c1/gpu``), but for the value in Slurm, which
is not split. Times are seconds since the epoch. Migrations are under ``sql/``; a test
holds the two together.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Enum,
    ForeignKeyConstraint,
    Index,
    String,
    Table,
    Text,
    false,
)

from shapleyprio.store.rows.pushes import PushState
from shapleyprio.store.schema import (
    ExactInteger,
    Holdings,
    InPartitions,
    JsonMapping,
    Several,
    Words,
    key,
    optional,
    required,
    table,
)

_ORGANIZATION = String(64)
_POOL = String(64)
_NAME = String(255)
_CHANNEL = String(32)
_SECOND = BigInteger()
_COUNT = BigInteger()

run = table(
    "run",
    key(BigInteger(), "job_id"),
    key(_SECOND, "submit", "start"),
    required(Words(255), "label", "account", "user"),
    required(Words(32), "state"),
    required(_SECOND, "begin"),
    optional(_SECOND, "end", "paused_at", "time_limit"),
    required(JsonMapping(), "nodes"),
    required(_SECOND, "released", default="0"),
    required(Words(255), "partition_name", default=""),
    required(Boolean(), "counted", default=false()),
    Index("run_by_end", "cluster", "end"),
)

allocation = table(
    "allocation",
    key(BigInteger(), "job_id"),
    key(_SECOND, "submit", "start"),
    key(BigInteger(), "number"),
    required(_ORGANIZATION, "organization", "owner"),
    required(_COUNT, "processors"),
    required(_SECOND, "begin"),
    optional(_SECOND, "end"),
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
    return table(
        name,
        key(_ORGANIZATION, "organization", "owner"),
        required(ExactInteger(), "total_processors", "total_first", "total_second"),
        required(ExactInteger(), "folded_processors", "folded_first", "folded_second"),
    )


ledger = _ledger("ledger")
earlier_ledger = _ledger("earlier_ledger")

stay = table(
    "stay",
    required(_POOL, "pool"),
    required(_SECOND, "since", "stale_after"),
    required(Several(), "clusters"),
    required(_NAME, "consortium"),
)

balance = table(
    "balance",
    key(_POOL, "pool"),
    key(_SECOND, "since"),
    key(_ORGANIZATION, "organization"),
    required(_SECOND, "t"),
    required(ExactInteger(), "value", "rate", "acceleration", "denominator"),
    required(String(64), "weight"),
    required(_COUNT, "all_parts"),
    Index("balance_by_pool", "pool"),
)

tenure = table(
    "tenure",
    key(String(16), "kind"),
    key(_NAME, "name"),
    key(BigInteger(), "number"),
    required(_ORGANIZATION, "organization"),
    optional(_SECOND, "since", "until"),
)

correction = table(
    "correction",
    key(BigInteger(), "number"),
    key(String(16), "kind"),
    key(_NAME, "name"),
    required(_SECOND, "at"),
    required(Words(255), "user"),
    required(Holdings(), "before", "after"),
)

node = table(
    "node",
    key(_NAME, "name"),
    key(_SECOND, "since"),
    required(_COUNT, "processors"),
    required(Several(), "partitions"),
)

account = table(
    "account",
    key(_NAME, "name"),
    key(_SECOND, "since"),
    optional(_NAME, "parent"),
)

capacity = table(
    "capacity",
    key(_ORGANIZATION, "organization"),
    key(_SECOND, "since"),
    required(InPartitions(), "processors"),
)

watermark = table(
    "watermark",
    required(String(64), "weight"),
    required(_SECOND, "opened", "observed_until", "accounted_to", "folded_to", "pruned_until"),
    optional(_SECOND, "horizon", "again_from"),
    required(_SECOND, "sure_until", "monotonic_time", "controller_time", "again_at", default="0"),
    required(String(64), "boot", default=""),
)

cycle = table(
    "cycle",
    key(BigInteger(), "number"),
    required(_SECOND, "started", "finished", "t"),
    required(String(32), "outcome"),
    required(_COUNT, "seen", "kept", "refused", "written"),
    required(Words(500), "message"),
    required(JsonMapping(), "seconds", "by_hand"),
    required(Words(32), "slurm_version", "rule", "adapter", default=""),
    required(_COUNT, "quarantined", "missed", "postponed", "of_unknown_accounts", default="0"),
    optional(_SECOND, "estimated_at"),
    Index("cycle_by_started", "cluster", "started"),
)

configuration = table(
    "configuration",
    key(BigInteger(), "number"),
    required(_SECOND, "at"),
    required(Words(64), "version"),
    required(JsonMapping(), "written"),
    required(Words(500), "refused"),
)

steering = table(
    "steering",
    key(_SECOND, "since"),
    required(Words(32), "rule", "chosen"),
    required(_CHANNEL, "channel"),
)

accepted_clock = table(
    "accepted_clock",
    key(_SECOND, "at"),
    required(_SECOND, "before"),
    required(_COUNT, "ahead"),
    required(Words(255), "user"),
)

pause = table(
    "pause",
    key(_SECOND, "since"),
    required(Words(255), "user", "resumed_by"),
    required(Words(500), "reason"),
    required(Boolean(), "keep"),
    optional(_SECOND, "until"),
)

exception = table(
    "exception",
    key(_SECOND, "since"),
    key(BigInteger(), "job_id"),
    required(Words(255), "label", "user", "ended_by"),
    required(_ORGANIZATION, "organization"),
    required(Words(500), "reason"),
    required(Boolean(), "before_all"),
    optional(_SECOND, "until", "ended"),
    required(JsonMapping(), "passed"),
)

standing = table(
    "standing",
    key(BigInteger(), "cycle"),
    key(_ORGANIZATION, "organization"),
    required(_SECOND, "t"),
    required(ExactInteger(), "contribution", "utility"),
    required(_COUNT, "parts", "pending", "running", "processors"),
    required(BigInteger(), "priority"),
    required(Words(500), "reason", default=""),
    required(ExactInteger(), "score", default="0"),
    required(_COUNT, "all_parts", default="0"),
    optional(_ORGANIZATION, "parent"),
    Index("standing_by_t", "cluster", "t"),
)

drift = table(
    "drift",
    key(_SECOND, "t"),
    key(_ORGANIZATION, "organization"),
    key(String(16), "schedule"),
    required(_SECOND, "begin"),
    required(String(16), "reference"),
    required(ExactInteger(), "utility", "fair"),
    required(_COUNT, "parts"),
)

estimate = table(
    "estimate",
    key(_SECOND, "t"),
    key(_ORGANIZATION, "organization"),
    required(_SECOND, "begin"),
    required(ExactInteger(), "value", "rate", "acceleration", "denominator", "error"),
    required(ExactInteger(), "utility", "alone", "without"),
    required(_COUNT, "parts", "coalitions"),
)

sampling = table(
    "sampling",
    required(BigInteger(), "seed"),
)

waiting_work = table(
    "waiting_work",
    key(BigInteger(), "number"),
    required(_ORGANIZATION, "organization"),
    required(Words(255), "account", "user"),
    required(_COUNT, "jobs"),
    required(ExactInteger(), "processor_seconds"),
)


def _forecast() -> list[Column[Any]]:
    """Returns the columns of a forecast but for its key."""
    return [
        *required(_ORGANIZATION, "organization"),
        *required(_SECOND, "median", "early", "late", "drawn_early", "drawn_late"),
        *required(_COUNT, "within_hour"),
        *required(String(32), "waits_for"),
    ]


start_forecast = table(
    "start_forecast",
    key(BigInteger(), "job_id"),
    required(_SECOND, "t"),
    _forecast(),
)

told_forecast = table(
    "told_forecast",
    key(BigInteger(), "job_id"),
    key(_SECOND, "t"),
    _forecast(),
    optional(_SECOND, "start"),
    Index("told_forecast_by_start", "cluster", "start"),
    Index("told_forecast_by_t", "cluster", "t"),
)

pending_jobs = table(
    "pending_jobs",
    key(_ORGANIZATION, "organization"),
    key(Words(255), "partition_name"),
    required(_COUNT, "jobs"),
    required(_SECOND, "since"),
)

kept_back = table(
    "kept_back",
    key(BigInteger(), "job_id"),
    optional(_SECOND, "counts_since", "kept_since"),
)

push = table(
    "push",
    key(BigInteger(), "number"),
    required(BigInteger(), "cycle", "original", "old", "new"),
    required(_CHANNEL, "channel"),
    required(Text(), "target"),
    required(_NAME, "key"),
    required(_ORGANIZATION, "organization"),
    required(Words(255), "label"),
    required(Words(500), "reason", "note"),
    required(Enum(PushState, native_enum=False, length=32, values_callable=list), "state"),
    required(_SECOND, "at"),
    Index("push_by_key", "cluster", "key", "number"),
    Index("push_by_state", "cluster", "state"),
    Index("push_by_at", "cluster", "at"),
)

work_after_end = table(
    "work_after_end",
    key(BigInteger(), "job_id"),
    key(_SECOND, "submit", "start"),
    required(_ORGANIZATION, "organization"),
    required(Words(255), "account", "user"),
    required(_SECOND, "end"),
    required(_COUNT, "processor_seconds"),
    Index("work_after_end_by_end", "cluster", "end"),
)

work_after_end_progress = table(
    "work_after_end_progress",
    required(_SECOND, "until"),
)

managed_value = table(
    "managed_value",
    key(_CHANNEL, "channel"),
    key(_NAME, "key"),
    required(BigInteger(), "original"),
    required(Several(), "written"),
    optional(BigInteger(), "by_hand"),
)

published_points = table(
    "published_points",
    required(Text(), "path"),
    required(Several(), "given"),
    optional(_SECOND, "since", "until"),
)

quarantined_line = table(
    "quarantined_line",
    key(String(64), "digest"),
    required(String(64), "source"),
    required(Words(2000), "text"),
    required(Words(500), "reason"),
    required(_SECOND, "first_seen", "last_seen"),
    required(_COUNT, "times"),
    Index("quarantined_line_by_last_seen", "cluster", "last_seen"),
)

lease = table(
    "lease",
    required(_NAME, "holder", "host"),
    required(BigInteger(), "pid", "token", "beat"),
    required(_SECOND, "since", "renewed_at", "ttl"),
    required(Boolean(), "has_journal", default=false()),
)
