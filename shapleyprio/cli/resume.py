"""`shapleyprio resume`."""

from __future__ import annotations

from pathlib import Path

import click

from shapleyprio.cli.common import user
from shapleyprio.cli.options.shared import config_option
from shapleyprio.common.wording import clock_time, visible
from shapleyprio.config import connect, load_config
from shapleyprio.daemon.ledgers import cluster_of
from shapleyprio.daemon.pushing import orders
from shapleyprio.store import Store


@click.command
@config_option
def command(config_path: Path) -> None:
    """Steer again after `shapleyprio pause`: the next cycle writes priorities."""
    config = load_config(config_path)
    slurm = connect(config)
    cluster = cluster_of(config, slurm)
    with Store.open(config.store.url) as store:
        ended = orders.resume(store.cluster(cluster), slurm.controller().time, user())
    since = f"since {clock_time(ended.since)} by {ended.user}"
    click.echo(f"The pause {visible(since)} is over: the next cycle writes priorities.")
