"""The partition in which a run was executed, which databases have as a word of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it; it is not known of the runs that are there.

    In a batch the table would be made anew, and where runs are deleted allocations go with them.
    """
    name = sa.Column("partition_name", sa.String(255), nullable=False, server_default="")
    op.add_column("run", name)


def downgrade() -> None:
    """Drop it."""
    op.drop_column("run", "partition_name")
