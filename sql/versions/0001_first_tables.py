"""The tables of the first release."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# else names that differ in case would be the same
MARIADB: dict[str, Any] = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}
INTEGER = sa.BigInteger()
EXACT = sa.String(48)
ORGANIZATION = sa.String(64)
NAME = sa.String(255)
WORD = sa.String(32)
SENTENCE = sa.String(500)
TEXT = sa.Text()
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


def required(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    """A column that always has a value."""
    return sa.Column(name, kind, nullable=False)


def optional(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    """A column that may be NULL."""
    return sa.Column(name, kind, nullable=True)


def defaulting(name: str, kind: sa.types.TypeEngine[Any], default: Any) -> sa.Column[Any]:
    """A column whose value the database itself knows where none is given."""
    return sa.Column(name, kind, nullable=False, server_default=default)


def create(name: str, keys: list[sa.Column[Any]], *contents: sa.schema.SchemaItem) -> None:
    """A table keyed by cluster and the given columns."""
    op.create_table(
        name,
        required("cluster", sa.String(64)),
        *keys,
        *contents,
        sa.PrimaryKeyConstraint("cluster", *(key.name for key in keys)),
        **MARIADB,
    )


def forecast() -> list[sa.Column[Any]]:
    """The columns of a forecast but for its key."""
    seconds = ("median", "early", "late", "drawn_early", "drawn_late")
    return [
        required("organization", ORGANIZATION),
        *(required(name, INTEGER) for name in seconds),
        required("within_hour", INTEGER),
        required("waits_for", WORD),
    ]


def upgrade() -> None:
    """Make them."""
    create(
        "run",
        [required("job_id", INTEGER), required("submit", INTEGER), required("start", INTEGER)],
        required("label", NAME),
        required("account", NAME),
        required("user", NAME),
        required("state", WORD),
        required("begin", INTEGER),
        optional("end", INTEGER),
        optional("paused_at", INTEGER),
        required("nodes", LONG_TEXT),
        defaulting("released", INTEGER, "0"),
        optional("time_limit", INTEGER),
        defaulting("partition_name", NAME, ""),
        defaulting("counted", sa.Boolean(), sa.false()),
    )
    op.create_index("run_by_end", "run", ["cluster", "end"])
    create(
        "allocation",
        [
            required("job_id", INTEGER),
            required("submit", INTEGER),
            required("start", INTEGER),
            required("number", INTEGER),
        ],
        required("organization", ORGANIZATION),
        required("owner", ORGANIZATION),
        required("processors", INTEGER),
        required("begin", INTEGER),
        optional("end", INTEGER),
        sa.ForeignKeyConstraint(
            ["cluster", "job_id", "submit", "start"],
            ["run.cluster", "run.job_id", "run.submit", "run.start"],
            name="allocation_of_run",
            ondelete="CASCADE",
        ),
    )
    op.create_index("allocation_by_begin", "allocation", ["cluster", "begin"])
    op.create_index("allocation_by_end", "allocation", ["cluster", "end"])
    create(
        "ledger",
        [required("organization", ORGANIZATION), required("owner", ORGANIZATION)],
        required("total_processors", EXACT),
        required("total_first", EXACT),
        required("total_second", EXACT),
        required("folded_processors", EXACT),
        required("folded_first", EXACT),
        required("folded_second", EXACT),
    )
    create(
        "earlier_ledger",
        [required("organization", ORGANIZATION), required("owner", ORGANIZATION)],
        required("total_processors", EXACT),
        required("total_first", EXACT),
        required("total_second", EXACT),
        required("folded_processors", EXACT),
        required("folded_first", EXACT),
        required("folded_second", EXACT),
    )
    create(
        "stay",
        [],
        required("pool", ORGANIZATION),
        required("since", INTEGER),
        required("clusters", TEXT),
        required("stale_after", INTEGER),
        required("consortium", NAME),
    )
    create(
        "balance",
        [
            required("pool", ORGANIZATION),
            required("since", INTEGER),
            required("organization", ORGANIZATION),
        ],
        required("t", INTEGER),
        required("value", EXACT),
        required("rate", EXACT),
        required("acceleration", EXACT),
        required("denominator", EXACT),
        required("weight", sa.String(64)),
        required("all_parts", INTEGER),
    )
    op.create_index("balance_by_pool", "balance", ["pool"])
    create(
        "tenure",
        [required("kind", sa.String(16)), required("name", NAME), required("number", INTEGER)],
        required("organization", ORGANIZATION),
        optional("since", INTEGER),
        optional("until", INTEGER),
    )
    create(
        "correction",
        [required("number", INTEGER), required("kind", sa.String(16)), required("name", NAME)],
        required("at", INTEGER),
        required("user", NAME),
        required("before", TEXT),
        required("after", TEXT),
    )
    create(
        "node",
        [required("name", NAME), required("since", INTEGER)],
        required("processors", INTEGER),
        required("partitions", TEXT),
    )
    create(
        "account",
        [required("name", NAME), required("since", INTEGER)],
        optional("parent", NAME),
    )
    create(
        "capacity",
        [required("organization", ORGANIZATION), required("since", INTEGER)],
        required("processors", TEXT),
    )
    create(
        "watermark",
        [],
        required("weight", sa.String(64)),
        required("opened", INTEGER),
        required("observed_until", INTEGER),
        required("accounted_to", INTEGER),
        optional("horizon", INTEGER),
        required("folded_to", INTEGER),
        required("pruned_until", INTEGER),
        defaulting("sure_until", INTEGER, "0"),
        defaulting("boot", sa.String(64), ""),
        defaulting("monotonic_time", INTEGER, "0"),
        defaulting("controller_time", INTEGER, "0"),
        defaulting("again_at", INTEGER, "0"),
        optional("again_from", INTEGER),
    )
    create(
        "cycle",
        [required("number", INTEGER)],
        required("started", INTEGER),
        required("finished", INTEGER),
        required("outcome", WORD),
        required("t", INTEGER),
        required("seen", INTEGER),
        required("kept", INTEGER),
        required("refused", INTEGER),
        required("written", INTEGER),
        required("message", SENTENCE),
        required("seconds", LONG_TEXT),
        defaulting("slurm_version", WORD, ""),
        defaulting("rule", WORD, ""),
        defaulting("quarantined", INTEGER, "0"),
        optional("estimated_at", INTEGER),
        defaulting("missed", INTEGER, "0"),
        defaulting("adapter", WORD, ""),
        defaulting("postponed", INTEGER, "0"),
        defaulting("of_unknown_accounts", INTEGER, "0"),
        required("by_hand", LONG_TEXT),
    )
    op.create_index("cycle_by_started", "cycle", ["cluster", "started"])
    create(
        "configuration",
        [required("number", INTEGER)],
        required("at", INTEGER),
        required("version", sa.String(64)),
        required("written", LONG_TEXT),
        required("refused", SENTENCE),
    )
    create(
        "steering",
        [required("since", INTEGER)],
        required("rule", WORD),
        required("chosen", WORD),
        required("channel", WORD),
    )
    create(
        "accepted_clock",
        [required("at", INTEGER)],
        required("before", INTEGER),
        required("ahead", INTEGER),
        required("user", NAME),
    )
    create(
        "pause",
        [required("since", INTEGER)],
        required("user", NAME),
        required("reason", SENTENCE),
        required("keep", sa.Boolean()),
        optional("until", INTEGER),
        required("resumed_by", NAME),
    )
    create(
        "exception",
        [required("since", INTEGER), required("job_id", INTEGER)],
        required("label", NAME),
        required("organization", ORGANIZATION),
        required("user", NAME),
        required("reason", SENTENCE),
        required("before_all", sa.Boolean()),
        optional("until", INTEGER),
        optional("ended", INTEGER),
        required("ended_by", NAME),
        required("passed", LONG_TEXT),
    )
    create(
        "standing",
        [required("cycle", INTEGER), required("organization", ORGANIZATION)],
        required("t", INTEGER),
        required("contribution", EXACT),
        required("utility", EXACT),
        required("parts", INTEGER),
        required("priority", INTEGER),
        required("pending", INTEGER),
        required("running", INTEGER),
        required("processors", INTEGER),
        defaulting("reason", SENTENCE, ""),
        defaulting("score", EXACT, "0"),
        defaulting("all_parts", INTEGER, "0"),
        optional("parent", ORGANIZATION),
    )
    op.create_index("standing_by_t", "standing", ["cluster", "t"])
    create(
        "drift",
        [
            required("t", INTEGER),
            required("organization", ORGANIZATION),
            required("schedule", sa.String(16)),
        ],
        required("begin", INTEGER),
        required("reference", sa.String(16)),
        required("utility", EXACT),
        required("fair", EXACT),
        required("parts", INTEGER),
    )
    create(
        "estimate",
        [required("t", INTEGER), required("organization", ORGANIZATION)],
        required("begin", INTEGER),
        required("value", EXACT),
        required("rate", EXACT),
        required("acceleration", EXACT),
        required("denominator", EXACT),
        required("error", EXACT),
        required("utility", EXACT),
        required("alone", EXACT),
        required("without", EXACT),
        required("parts", INTEGER),
        required("coalitions", INTEGER),
    )
    create(
        "sampling",
        [],
        required("seed", INTEGER),
    )
    create(
        "waiting_work",
        [required("number", INTEGER)],
        required("organization", ORGANIZATION),
        required("account", NAME),
        required("user", NAME),
        required("jobs", INTEGER),
        required("processor_seconds", EXACT),
    )
    create(
        "start_forecast",
        [required("job_id", INTEGER)],
        required("t", INTEGER),
        *forecast(),
    )
    create(
        "told_forecast",
        [required("job_id", INTEGER), required("t", INTEGER)],
        *forecast(),
        optional("start", INTEGER),
    )
    op.create_index("told_forecast_by_start", "told_forecast", ["cluster", "start"])
    op.create_index("told_forecast_by_t", "told_forecast", ["cluster", "t"])
    create(
        "pending_jobs",
        [required("organization", ORGANIZATION), required("partition_name", NAME)],
        required("jobs", INTEGER),
        required("since", INTEGER),
    )
    create(
        "kept_back",
        [required("job_id", INTEGER)],
        optional("counts_since", INTEGER),
        optional("kept_since", INTEGER),
    )
    create(
        "push",
        [required("number", INTEGER)],
        required("cycle", INTEGER),
        required("channel", WORD),
        required("target", TEXT),
        required("key", NAME),
        required("organization", ORGANIZATION),
        required("label", NAME),
        required("original", INTEGER),
        required("old", INTEGER),
        required("new", INTEGER),
        required("reason", SENTENCE),
        required("state", WORD),
        required("note", SENTENCE),
        required("at", INTEGER),
    )
    op.create_index("push_by_at", "push", ["cluster", "at"])
    op.create_index("push_by_key", "push", ["cluster", "key", "number"])
    op.create_index("push_by_state", "push", ["cluster", "state"])
    create(
        "work_after_end",
        [required("job_id", INTEGER), required("submit", INTEGER), required("start", INTEGER)],
        required("organization", ORGANIZATION),
        required("account", NAME),
        required("user", NAME),
        required("end", INTEGER),
        required("processor_seconds", INTEGER),
    )
    op.create_index("work_after_end_by_end", "work_after_end", ["cluster", "end"])
    create(
        "work_after_end_progress",
        [],
        required("until", INTEGER),
    )
    create(
        "managed_value",
        [required("channel", WORD), required("key", NAME)],
        required("original", INTEGER),
        required("written", TEXT),
        optional("by_hand", INTEGER),
    )
    create(
        "published_points",
        [],
        required("path", TEXT),
        required("given", TEXT),
        optional("since", INTEGER),
        optional("until", INTEGER),
    )
    create(
        "quarantined_line",
        [required("digest", sa.String(64))],
        required("source", sa.String(64)),
        required("text", sa.String(2000)),
        required("reason", SENTENCE),
        required("first_seen", INTEGER),
        required("last_seen", INTEGER),
        required("times", INTEGER),
    )
    op.create_index("quarantined_line_by_last_seen", "quarantined_line", ["cluster", "last_seen"])
    create(
        "lease",
        [],
        required("holder", NAME),
        required("host", NAME),
        required("pid", INTEGER),
        required("since", INTEGER),
        required("renewed_at", INTEGER),
        required("ttl", INTEGER),
        required("token", INTEGER),
        required("beat", INTEGER),
        defaulting("has_journal", sa.Boolean(), sa.false()),
    )
