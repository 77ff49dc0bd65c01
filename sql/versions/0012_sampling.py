"""The seed by which a cluster's coalitions are drawn."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TEXTS = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}


def upgrade() -> None:
    """Make the table; clusters with estimates keep 0, by which theirs were drawn so far."""
    op.create_table(
        "sampling",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        **TEXTS,
    )
    op.execute("INSERT INTO sampling (cluster, seed) SELECT DISTINCT cluster, 0 FROM estimate")


def downgrade() -> None:
    """Drop it."""
    op.drop_table("sampling")
