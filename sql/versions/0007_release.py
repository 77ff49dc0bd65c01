"""When each run could start and its time limit; how many processors organizations bring."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

MARIADB: dict[str, Any] = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}
NAME = sa.String(64)
INTEGER = sa.BigInteger()
RUN = sa.table("run", sa.column("released"), sa.column("submit"))


def upgrade() -> None:
    """Add columns and a table. Stored runs count as released when they were submitted.

    Batches are for tables that no other refers to: they make a table anew, with its rows, and
    where runs are deleted allocations go with them.
    """
    op.add_column("run", sa.Column("released", INTEGER, nullable=False, server_default="0"))
    op.add_column("run", sa.Column("time_limit", INTEGER, nullable=True))
    op.execute(RUN.update().values(released=RUN.c.submit))
    op.create_table(
        "capacity",
        sa.Column("cluster", NAME, nullable=False),
        sa.Column("organization", NAME, nullable=False),
        sa.Column("since", INTEGER, nullable=False),
        sa.Column("processors", INTEGER, nullable=False),
        sa.PrimaryKeyConstraint("cluster", "organization", "since"),
        **MARIADB,
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("capacity")
    for column in ("time_limit", "released"):
        op.drop_column("run", column)
