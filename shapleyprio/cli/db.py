"""`shapleyprio db`."""

from __future__ import annotations

from pathlib import Path

import click

from shapleyprio.cli.common import GroupOfCommands, user
from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.shared import config_option, pool_option
from shapleyprio.cli.shown.tables import Cells, FittingColumn, FittingTable, standard_output
from shapleyprio.common.wording import clock_time, count, whole
from shapleyprio.config import connect, load_config
from shapleyprio.daemon.accounting.accepted_clock import accept_clock
from shapleyprio.daemon.ledgers import cluster_of, segment_meant
from shapleyprio.daemon.pushing.cut_off import journal_of
from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.store import HEAD, Store


@click.group(cls=GroupOfCommands)
def command() -> None:
    """Upgrade the store or look at it."""


@command.command
@config_option
def upgrade(config_path: Path) -> None:
    """Bring the store's tables to this release's revision; nothing is lost.

    Stop the daemon first and keep a copy of the database.
    """
    with Store.open(load_config(config_path).store.url, any_revision=True) as store:
        before = store.revision()
        store.upgrade()
        after = store.revision()
    if before == after:
        click.echo(f"the store is already at revision {after}")
    else:
        click.echo(f"upgraded the store from revision {before or 'none'} to {after}")


@command.command("accept-clock")
@config_option
@pool_option
def accept(config_path: Path, pool: str | None) -> None:
    """Let the ledger go on from the controller's clock, which was ahead and is right now.

    The daemon waits until a clock that has gone back has caught up with the last cycle. This lets
    it continue at once: what is recorded with later times is accounted when their time has come, so
    nothing is lost. Stop the daemon first.
    """
    config = load_config(config_path)
    slurm = connect(config)
    segment = segment_meant(config, cluster_of(config, slurm), pool)
    seconds = config.service.lease
    with (
        journal_of(config, create=False) as journal,
        Store.open(config.store.url) as opened,
        Lease(opened.cluster(segment.ledger), seconds=seconds, journal=journal).held() as ours,
    ):
        found = accept_clock(ours, slurm.controller(), overlap=config.service.overlap, user=user())
    click.echo(
        f"the ledger stands at {clock_time(found.at)}, no longer at {clock_time(found.before)}"
    )
    if found.ahead:
        click.echo(
            f"{count(found.ahead, 'run')} of later times will count once the clock gets there"
        )


@command.command
@config_option
@json_option
def status(config_path: Path, *, json_file: Path | None) -> None:
    """Show the store's revision, clusters and table sizes."""
    with Store.open(load_config(config_path).store.url, any_revision=True) as store:
        revision = store.revision()
        is_current = revision == HEAD
        clusters = store.clusters() if is_current else None
        sizes = dict(store.sizes()) if is_current else None
    found = {"revision": revision, "head": HEAD}
    if not write_json(json_file, {**found, "clusters": clusters, "rows": sizes}):
        return
    advice = "" if is_current else " (run `shapleyprio db upgrade`)"
    click.echo(f"revision {revision or 'none'}, this release has {HEAD}{advice}")
    if clusters is None or sizes is None:  # it may hold some, which this release cannot read
        return
    click.echo(f"clusters: {', '.join(clusters) or 'none'}")
    columns = (
        FittingColumn("table", list(sizes), Cells.NAME),
        FittingColumn("rows", [whole(rows) for rows in sizes.values()]),
    )
    standard_output().print(FittingTable(columns, empty="no tables"))
