"""What a clock that nobody sets showed beside the controller's, to find out when that one steps."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it; what the controller's clock showed last is about what was read until."""
    op.add_column("watermark", sa.Column("boot", sa.String(64), nullable=False, server_default=""))
    for name in ("ran", "shown", "again_at"):
        op.add_column(
            "watermark", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")
        )
    op.add_column("watermark", sa.Column("again_from", sa.BigInteger(), nullable=True))
    op.execute("UPDATE watermark SET shown = observed_until")


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("watermark") as table:
        for name in ("boot", "ran", "shown", "again_at", "again_from"):
            table.drop_column(name)
