"""`shapleyprio rollback`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from shapleyprio.cli.common import cluster_of, config_option, connect, load, print_plan
from shapleyprio.service.lease import Lease
from shapleyprio.service.rollback import plan_rollback, roll_back
from shapleyprio.slurm.port import Channel
from shapleyprio.store import Store

LEASE_SECONDS = 300


@click.command
@config_option
@click.option("--dry-run", is_flag=True, help="Show what would be put back, write nothing.")
def command(config_path: Path, *, dry_run: bool) -> None:
    """Put every priority that is still ours back as it was found.

    Stop the daemon first, else its next cycle would write again. What somebody else has changed
    since is left alone.
    """
    config = load(config_path)
    slurm = connect(config)
    cluster = cluster_of(config, slurm)
    with Store.open(config.store.url) as store:
        if dry_run:
            now = slurm.controller().time
            plan = plan_rollback(store, cluster, slurm, Channel, cycle=0, now=now)
            print_plan(Console(), plan)
            return
        lease = Lease(store, cluster, seconds=LEASE_SECONDS)
        lease.renew()
        try:
            outcome = roll_back(store, cluster, slurm)
        finally:
            lease.release()
    click.echo(
        f"{outcome.applied} priorities put back, {outcome.unconfirmed} put back unseen (running or "
        f"held jobs), {outcome.refused} refused (jobs that are gone, as a rule)"
    )
