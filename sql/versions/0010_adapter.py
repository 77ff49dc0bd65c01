"""Through which adapter a cycle spoke to Slurm."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of earlier cycles it is not known."""
    with op.batch_alter_table("cycle") as table:
        table.add_column(sa.Column("adapter", sa.String(32), nullable=False, server_default=""))


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("cycle") as table:
        table.drop_column("adapter")
