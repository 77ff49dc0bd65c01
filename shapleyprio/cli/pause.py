"""`shapleyprio pause`."""

from __future__ import annotations

from pathlib import Path

import click

from shapleyprio.cli.common import user
from shapleyprio.cli.options.shared import config_option, reason_option
from shapleyprio.config import connect, load_config
from shapleyprio.daemon.ledgers import cluster_of
from shapleyprio.daemon.pushing import orders
from shapleyprio.store import PauseRow, Store


@click.command
@config_option
@reason_option()
@click.option("--keep", is_flag=True, help="Leave priorities as they were last written.")
def command(config_path: Path, *, reason: str, keep: bool) -> None:
    """Stop steering until `shapleyprio resume`; accounting continues.

    The next cycle restores every original priority, and everybody sees who paused, since
    when and why. Restarts of the daemon change nothing.
    """
    config = load_config(config_path)
    slurm = connect(config)
    cluster = cluster_of(config, slurm)
    row = PauseRow(since=slurm.controller().time, user=user(), reason=reason, keep=keep)
    with Store.open(config.store.url) as store:
        orders.pause(store.cluster(cluster), row)
    stands = "stay as they are" if keep else "are put back as they were found"
    click.echo(f"Paused: with the next cycle priorities {stands}.")
