"""A token of the lease that grows with each takeover, and a count of its holder's beats."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both; who holds a lease of before cannot renew it, and it is forgotten."""
    op.execute("DELETE FROM lease")
    with op.batch_alter_table("lease") as table:
        table.add_column(sa.Column("token", sa.BigInteger(), nullable=False))
        table.add_column(sa.Column("beat", sa.BigInteger(), nullable=False))


def downgrade() -> None:
    """Drop them, and leases that were given back."""
    op.execute("DELETE FROM lease")
    with op.batch_alter_table("lease") as table:
        table.drop_column("beat")
        table.drop_column("token")
