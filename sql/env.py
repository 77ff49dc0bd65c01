"""Alembic's entry: runs the migrations on the connection that the store hands over."""

from alembic import context

from shapleyprio.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot alter most things in place
)
with context.begin_transaction():
    context.run_migrations()
