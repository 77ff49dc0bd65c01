"""Up to when accounting was surely read completely, even if the clock comes back."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it; what was read so far is taken for sure."""
    op.add_column(
        "watermark", sa.Column("sure_until", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.execute("UPDATE watermark SET sure_until = observed_until")


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("watermark") as table:
        table.drop_column("sure_until")
