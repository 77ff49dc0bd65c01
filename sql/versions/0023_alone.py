"""Whether the holder of the lease has a journal, and so goes on while it cannot show life."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it; so far no holder had one."""
    op.add_column(
        "lease", sa.Column("has_journal", sa.Boolean(), nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("lease") as table:
        table.drop_column("has_journal")
