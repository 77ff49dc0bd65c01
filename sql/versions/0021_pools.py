"""Pools of clusters: the stay of each, what was executed before it, and what it found."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

TEXTS = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}
MOMENTS = [
    f"{sums}_{moment}"
    for sums in ("total", "folded")
    for moment in ("processors", "first", "second")
]


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "earlier_ledger",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("organization", sa.String(64), primary_key=True),
        sa.Column("owner", sa.String(64), primary_key=True),
        *(sa.Column(name, sa.String(48), nullable=False) for name in MOMENTS),
        **TEXTS,
    )
    op.create_table(
        "stay",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("pool", sa.String(64), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("clusters", sa.Text(), nullable=False),
        sa.Column("stale_after", sa.BigInteger(), nullable=False),
        sa.Column("consortium", sa.String(255), nullable=False),
        **TEXTS,
    )
    op.create_table(
        "balance",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("pool", sa.String(64), primary_key=True),
        sa.Column("since", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("organization", sa.String(64), primary_key=True),
        sa.Column("t", sa.BigInteger(), nullable=False),
        *(
            sa.Column(name, sa.String(48), nullable=False)
            for name in ("value", "rate", "acceleration", "denominator")
        ),
        sa.Column("weight", sa.String(64), nullable=False),
        **TEXTS,
    )
    op.create_index("balance_by_pool", "balance", ["pool"])


def downgrade() -> None:
    """Drop them."""
    op.drop_table("balance")
    op.drop_table("stay")
    op.drop_table("earlier_ledger")
