"""What the replays of the last window found."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MARIADB: dict[str, Any] = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}
NAME = sa.String(64)
EXACT = sa.String(48)
INTEGER = sa.BigInteger()
WORD = sa.String(16)


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "drift",
        sa.Column("cluster", NAME, nullable=False),
        sa.Column("t", INTEGER, nullable=False),
        sa.Column("organization", NAME, nullable=False),
        sa.Column("schedule", WORD, nullable=False),
        sa.Column("begin", INTEGER, nullable=False),
        sa.Column("reference", WORD, nullable=False),
        sa.Column("utility", EXACT, nullable=False),
        sa.Column("fair", EXACT, nullable=False),
        sa.Column("parts", INTEGER, nullable=False),
        sa.PrimaryKeyConstraint("cluster", "t", "organization", "schedule"),
        **MARIADB,
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("drift")
