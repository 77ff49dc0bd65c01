"""Work that runs did after their end, and up to which end Slurm was asked for it."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

TEXTS = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "work_after_end",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("job_id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("submit", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("start", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("organization", sa.String(64), nullable=False),
        sa.Column("account", sa.String(255), nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=False),
        sa.Column("processor_seconds", sa.BigInteger(), nullable=False),
        **TEXTS,
    )
    op.create_index("work_after_end_by_end", "work_after_end", ["cluster", "end"])
    op.create_table(
        "asked_for_work_after_end",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("until", sa.BigInteger(), nullable=False),
        **TEXTS,
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("asked_for_work_after_end")
    op.drop_table("work_after_end")
