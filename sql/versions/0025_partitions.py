"""How many processors organizations bring to which partitions."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

TEXTS = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}


def upgrade() -> None:
    """Make the table anew: the next cycle observes what is there, as when a ledger is opened."""
    _make(sa.Text())


def downgrade() -> None:
    """Make it as it was, empty as well."""
    _make(sa.BigInteger())


def _make(processors: sa.types.TypeEngine[int] | sa.types.TypeEngine[str]) -> None:
    op.drop_table("capacity")
    op.create_table(
        "capacity",
        sa.Column("cluster", sa.String(64), primary_key=True),
        sa.Column("organization", sa.String(64), primary_key=True),
        sa.Column("since", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("processors", processors, nullable=False),
        **TEXTS,
    )
