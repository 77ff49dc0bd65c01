"""How much work had been done for all when a standing was taken."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the parts."""
    with op.batch_alter_table("standing") as table:
        table.add_column(
            sa.Column("all_parts", sa.BigInteger(), nullable=False, server_default="0")
        )


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("standing") as table:
        table.drop_column("all_parts")
