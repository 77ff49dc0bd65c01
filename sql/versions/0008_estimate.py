"""Estimated contributions, for the rule that ranks by the Shapley value itself."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TEXTS = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}
EXACT = ("value", "rate", "acceleration", "denominator", "error", "utility", "alone", "without")


def upgrade() -> None:
    """Make the table, and note in a cycle which estimate it ranked by."""
    op.create_table(
        "estimate",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("t", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("organization", sa.String(64), primary_key=True, autoincrement=False),
        sa.Column("begin", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.String(48), nullable=False) for name in EXACT),
        sa.Column("parts", sa.BigInteger(), nullable=False),
        sa.Column("coalitions", sa.BigInteger(), nullable=False),
        **TEXTS,
    )
    with op.batch_alter_table("cycle") as table:
        table.add_column(sa.Column("estimated_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Drop both."""
    with op.batch_alter_table("cycle") as table:
        table.drop_column("estimated_at")
    op.drop_table("estimate")
