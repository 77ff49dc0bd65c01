"""`shapleyprio rollback`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.shared import config_option
from shapleyprio.cli.shown.standings import plan_table
from shapleyprio.cli.shown.tables import standard_output
from shapleyprio.config import connect, load_config
from shapleyprio.daemon.ledgers import cluster_of
from shapleyprio.daemon.pushing.cut_off import hand_over, journal_of
from shapleyprio.daemon.pushing.lease import Lease
from shapleyprio.daemon.pushing.push import Stamp
from shapleyprio.daemon.pushing.rollback import plan_rollback, roll_back
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.store import Store


@click.command
@config_option
@json_option
@click.option("--dry-run", is_flag=True, help="Show what would be restored; write nothing.")
def command(config_path: Path, *, dry_run: bool, json_file: Path | None) -> None:
    """Restore every priority that the daemon changed.

    Stop the daemon first, otherwise its next cycle writes again. Values that somebody else has
    changed since then stay.
    """
    config = load_config(config_path)
    slurm = connect(config)
    cluster = cluster_of(config, slurm)
    with Store.open(config.store.url) as opened:
        store = opened.cluster(cluster)
        if dry_run:
            now = slurm.controller().time
            plan = plan_rollback(store, slurm, CHANNELS.values(), Stamp(cycle=0, at=now))
            if write_json(json_file, [asdict(push) for push in plan]):
                standard_output().print(plan_table(plan))
            return
        with (
            journal_of(config, create=False) as journal,
            Lease(store, seconds=config.service.lease, journal=journal).held() as ours,
        ):
            if journal is not None:
                for ledger in journal.ledgers():
                    hand_over(journal, ours.ledger(ledger))
            counts = roll_back(ours, slurm)
    why = ": the job has ended, or Slurm did not do it (`shapleyprio history --pushes` says why)"
    if write_json(json_file, asdict(counts)):
        click.echo(
            f"{counts.applied} priorities put back, {counts.unconfirmed} put back unseen "
            "(jobs that run, are held, or whose line could not be read), "
            f"{counts.refused} not put back{why if counts.refused else ''}"
        )
