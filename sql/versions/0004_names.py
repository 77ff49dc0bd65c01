"""The names of today for allocations, watermark, managed values and quarantined lines."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = {
    "placement": "allocation",
    "progress": "watermark",
    "mark": "managed_value",
    "refused": "quarantined_line",
}
"""Name before -> name from now on."""

INDEXES = {
    "placement": {"by_begin": ["cluster", "begin"], "by_end": ["cluster", "end"]},
    "refused": {"by_last_seen": ["cluster", "last_seen"]},
}
"""Table, by its name before -> end of an index's name -> columns."""

KEY_OF_RUN = ["cluster", "job_id", "submit", "start"]


def upgrade() -> None:
    """Rename tables, columns, indexes and a reference; rows stay as they are."""
    for before, name in TABLES.items():
        rename_table(before, name, INDEXES.get(before, {}))
    rename_reference("allocation", "placement_of_run", "allocation_of_run")
    for table in ("push", "managed_value"):
        rename_column(table, "asked", "original")


def downgrade() -> None:
    """Rename them back."""
    for table in ("push", "managed_value"):
        rename_column(table, "original", "asked")
    rename_reference("allocation", "allocation_of_run", "placement_of_run")
    for before, name in TABLES.items():
        rename_table(name, before, INDEXES.get(before, {}))


def rename_table(before: str, name: str, indexes: dict[str, list[str]]) -> None:
    """Renames a table and its indexes."""
    for end in indexes:
        op.drop_index(f"{before}_{end}", before)
    op.rename_table(before, name)
    for end, columns in indexes.items():
        op.create_index(f"{name}_{end}", name, columns)


def rename_reference(table: str, before: str, name: str) -> None:
    """Renames the reference of a table to the runs."""
    with op.batch_alter_table(table) as batch:
        batch.drop_constraint(before, type_="foreignkey")
        batch.create_foreign_key(name, "run", KEY_OF_RUN, KEY_OF_RUN, ondelete="CASCADE")


def rename_column(table: str, before: str, name: str) -> None:
    """Renames a column of required integers."""
    op.alter_column(
        table, before, new_column_name=name, existing_type=sa.BigInteger(), existing_nullable=False
    )
