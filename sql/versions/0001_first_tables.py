"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

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
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


def required(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    """A column that always has a value."""
    return sa.Column(name, kind, nullable=False)


def optional(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    """A column that may be NULL."""
    return sa.Column(name, kind, nullable=True)


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
    )
    op.create_index("run_by_end", "run", ["cluster", "end"])
    create(
        "placement",
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
            name="placement_of_run",
            ondelete="CASCADE",
        ),
    )
    op.create_index("placement_by_begin", "placement", ["cluster", "begin"])
    op.create_index("placement_by_end", "placement", ["cluster", "end"])
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
        "tenure",
        [required("kind", sa.String(16)), required("name", NAME), required("number", INTEGER)],
        required("organization", ORGANIZATION),
        optional("since", INTEGER),
        optional("until", INTEGER),
    )
    create(
        "progress",
        [],
        required("weight", sa.String(64)),
        required("opened", INTEGER),
        required("observed_until", INTEGER),
        required("accounted_to", INTEGER),
        optional("horizon", INTEGER),
        required("folded_to", INTEGER),
        required("pruned_until", INTEGER),
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
    )
    op.create_index("cycle_by_started", "cycle", ["cluster", "started"])
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
    )
    op.create_index("standing_by_t", "standing", ["cluster", "t"])
    create(
        "push",
        [required("number", INTEGER)],
        required("cycle", INTEGER),
        required("channel", WORD),
        required("target", sa.Text()),
        required("key", NAME),
        required("organization", ORGANIZATION),
        required("label", NAME),
        required("asked", INTEGER),
        required("old", INTEGER),
        required("new", INTEGER),
        required("reason", SENTENCE),
        required("state", WORD),
        required("note", SENTENCE),
        required("at", INTEGER),
    )
    op.create_index("push_by_key", "push", ["cluster", "key", "number"])
    op.create_index("push_by_state", "push", ["cluster", "state"])
    op.create_index("push_by_at", "push", ["cluster", "at"])
    create(
        "mark",
        [required("channel", WORD), required("key", NAME)],
        required("asked", INTEGER),
        required("written", sa.Text()),
    )
    create(
        "refused",
        [required("digest", sa.String(64))],
        required("source", sa.String(64)),
        required("text", sa.String(2000)),
        required("reason", SENTENCE),
        required("first_seen", INTEGER),
        required("last_seen", INTEGER),
        required("times", INTEGER),
    )
    op.create_index("refused_by_last_seen", "refused", ["cluster", "last_seen"])
    create(
        "lease",
        [],
        required("holder", NAME),
        required("host", NAME),
        required("pid", INTEGER),
        required("since", INTEGER),
        required("renewed_at", INTEGER),
        required("ttl", INTEGER),
    )


def downgrade() -> None:
    """Drop them."""
    for name in (
        *("lease", "refused", "mark", "push", "standing", "cycle"),
        *("progress", "tenure", "ledger", "placement", "run"),
    ):
        op.drop_table(name)
