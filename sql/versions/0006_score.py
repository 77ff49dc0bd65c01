"""The score by which an organization was ranked; refused writes apart from quarantined lines."""

import sqlite3

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STANDING = sa.table("standing", sa.column("score"), sa.column("contribution"), sa.column("utility"))
CYCLE = sa.table("cycle", sa.column("refused"), sa.column("quarantined"))


def upgrade() -> None:
    """Add the columns. DirectContr ranked before, so the score is the balance.

    How many of the refused were lines is not known of earlier cycles; they stay together.
    """
    with op.batch_alter_table("standing") as table:
        table.add_column(sa.Column("score", sa.String(48), nullable=False, server_default="0"))
    op.execute(STANDING.update().values(score=balance()))
    with op.batch_alter_table("cycle") as table:
        table.add_column(
            sa.Column("quarantined", sa.BigInteger(), nullable=False, server_default="0")
        )


def downgrade() -> None:
    """Drop them; refused and quarantined are summed up again."""
    op.execute(CYCLE.update().values(refused=CYCLE.c.refused + CYCLE.c.quarantined))
    for name, column in (("cycle", "quarantined"), ("standing", "score")):
        with op.batch_alter_table(name) as table:
            table.drop_column(column)


def balance() -> sa.ColumnElement[str]:
    """Returns contribution − utility, decimal texts beyond 64 bits, as exact decimal text."""
    driver = op.get_bind().connection.driver_connection
    if isinstance(driver, sqlite3.Connection):  # its own numbers have 64 bits
        driver.create_function("exact_difference", 2, exact_difference, deterministic=True)
        return sa.func.exact_difference(STANDING.c.contribution, STANDING.c.utility)
    exact = sa.Numeric(65, 0)
    difference = sa.cast(STANDING.c.contribution, exact) - sa.cast(STANDING.c.utility, exact)
    return sa.cast(difference, sa.String(48))


def exact_difference(minuend: str, subtrahend: str) -> str:
    """Returns the difference of two decimal texts."""
    return str(int(minuend) - int(subtrahend))
