"""How many writes a cycle left to the next."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the number."""
    with op.batch_alter_table("cycle") as table:
        table.add_column(
            sa.Column("postponed", sa.BigInteger(), nullable=False, server_default="0")
        )


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("cycle") as table:
        table.drop_column("postponed")
