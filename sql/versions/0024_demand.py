"""Waiting jobs that could not start in their turn, and the waiting work of the last estimate."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

TEXTS = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}


def upgrade() -> None:
    """Make both tables, empty."""
    op.create_table(
        "kept_back",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("job_id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("counts_since", sa.BigInteger(), nullable=True),
        sa.Column("kept_since", sa.BigInteger(), nullable=True),
        **TEXTS,
    )
    op.create_table(
        "waiting_work",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("organization", sa.String(64), nullable=False),
        sa.Column("account", sa.String(255), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.Column("processor_seconds", sa.String(48), nullable=False),
        **TEXTS,
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("waiting_work")
    op.drop_table("kept_back")
