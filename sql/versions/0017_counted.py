"""Whether Slurm said how many processors a run holds on each node, or only how many in all."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it, not in a batch: allocations refer to runs. Those there are were split evenly."""
    op.add_column(
        "run", sa.Column("counted", sa.Boolean(), nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_column("run", "counted")
