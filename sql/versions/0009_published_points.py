"""What the table of points has given to new jobs, and how many it has missed."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TEXTS = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}


def upgrade() -> None:
    """Make the table, and count in a cycle the jobs that were missed."""
    op.create_table(
        "published_points",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("given", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=True),
        sa.Column("until", sa.BigInteger(), nullable=True),
        **TEXTS,
    )
    with op.batch_alter_table("cycle") as table:
        table.add_column(
            sa.Column("missed", sa.BigInteger(), nullable=False, server_default="0"),
        )


def downgrade() -> None:
    """Drop both."""
    with op.batch_alter_table("cycle") as table:
        table.drop_column("missed")
    op.drop_table("published_points")
