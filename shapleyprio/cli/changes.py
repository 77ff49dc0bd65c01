"""`shapleyprio changes`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.shared import config_option, pool_option
from shapleyprio.cli.options.types import ALWAYS, INSTANT
from shapleyprio.cli.shown.tables import Cells, FittingColumn, FittingTable, standard_output
from shapleyprio.common.wording import DAY, clock_time, duration
from shapleyprio.config import load_config
from shapleyprio.daemon.answering.changes import read_changes
from shapleyprio.daemon.answering.freshness import patience_of
from shapleyprio.daemon.ledgers import stored_cluster
from shapleyprio.store import Store

WEEK = 7 * DAY


@click.command
@config_option
@pool_option
@json_option
@click.option(
    "--since",
    type=INSTANT,
    metavar="DATE",
    help=f"Begin: a date, a date and time (local unless it has a zone), or {ALWAYS!r}.  "
    "[default: a week ago]",
)
def command(
    config_path: Path, *, pool: str | None, since: int | None, json_file: Path | None
) -> None:
    """Show what changed, the oldest first.

    One timeline of configurations that the daemon accepted (key by key) or refused; upgrades of
    shapleyprio and Slurm; nodes, accounts and partitions that changed hands, and corrections; the
    rule and the channel that steered; pauses and exceptions; accepted clocks of the controller;
    failed cycles, and times without any.
    """
    begin = int(time.time()) - WEEK if since is None else since
    config = load_config(config_path)
    with (
        Store.open(config.store.url) as store,
        stored_cluster(config, store, pool).reading() as view,
    ):
        changes = read_changes(view, begin, patience_of(config.service.poll_interval))
    if write_json(json_file, [change.as_json() for change in changes]):
        lasted = [
            "" if change.until is None else duration(change.until - change.at) for change in changes
        ]
        table = FittingTable(
            [
                FittingColumn("time", [clock_time(one.at) for one in changes]),
                FittingColumn("lasted", lasted, leaves=1),
                FittingColumn("kind", [one.kind for one in changes], Cells.NAME, leaves=2),
                FittingColumn("what", [one.what for one in changes], Cells.TEXT),
            ],
            empty=f"nothing changed since {clock_time(begin)}",
        )
        standard_output().print(table)
