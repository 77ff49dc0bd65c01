"""`shapleyprio db`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from shapleyprio.cli.common import config_option, json_option, load, print_json
from shapleyprio.store import Store


@click.group
def command() -> None:
    """Upgrade the store or look at it."""


@command.command
@config_option
def upgrade(config_path: Path) -> None:
    """Bring the store's tables to this release's revision; nothing is lost.

    Stop the daemon first and keep a copy of the database.
    """
    with Store.open(load(config_path).store.url, any_revision=True) as store:
        before = store.revision().current
        store.upgrade()
        after = store.revision().current
    if before == after:
        click.echo(f"the store is at revision {after} already")
    else:
        click.echo(f"upgraded the store from revision {before or 'none'} to {after}")


@command.command
@config_option
@json_option
def status(config_path: Path, *, as_json: bool) -> None:
    """Show the store's revision, clusters and table sizes."""
    with Store.open(load(config_path).store.url, any_revision=True) as store:
        revision = store.revision()
        current = revision.current == revision.head
        clusters = store.clusters() if current else []
        sizes = dict(store.sizes()) if current else {}
    if as_json:
        print_json(
            {
                "revision": revision.current,
                "head": revision.head,
                "clusters": clusters,
                "rows": sizes,
            }
        )
        return
    advice = "" if current else " (run `shapleyprio db upgrade`)"
    click.echo(f"revision {revision.current or 'none'}, this release has {revision.head}{advice}")
    click.echo(f"clusters: {', '.join(clusters) or 'none'}")
    table = Table("table", "rows")
    for name, rows in sizes.items():
        table.add_row(name, f"{rows:,}")
    Console().print(table)
