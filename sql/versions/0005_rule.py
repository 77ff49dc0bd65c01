"""Which rule ranked the organizations in a cycle, and why it ranked each as it did."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

COLUMNS = {"cycle": ("rule", 32), "standing": ("reason", 500)}
"""Table -> name and length of its new column."""


def upgrade() -> None:
    """Add the columns; of earlier cycles it is not known."""
    for name, (column, length) in COLUMNS.items():
        with op.batch_alter_table(name) as table:
            table.add_column(
                sa.Column(column, sa.String(length), nullable=False, server_default="")
            )


def downgrade() -> None:
    """Drop them."""
    for name, (column, _) in COLUMNS.items():
        with op.batch_alter_table(name) as table:
            table.drop_column(column)
