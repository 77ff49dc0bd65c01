"""How many waiting jobs a cycle found under accounts that Slurm's accounting does not know."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the number."""
    with op.batch_alter_table("cycle") as table:
        table.add_column(
            sa.Column("of_unknown_accounts", sa.BigInteger(), nullable=False, server_default="0")
        )


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("cycle") as table:
        table.drop_column("of_unknown_accounts")
