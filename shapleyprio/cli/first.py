"""`shapleyprio first`."""

from __future__ import annotations

from pathlib import Path

import click

from shapleyprio.cli.common import user
from shapleyprio.cli.options.refusals import refuse
from shapleyprio.cli.options.shared import config_option, reason_option
from shapleyprio.cli.options.types import SECOND
from shapleyprio.common.wording import clock_time, visible
from shapleyprio.config import connect, load_config
from shapleyprio.config.segments import segments_of
from shapleyprio.daemon.ledgers import cluster_of
from shapleyprio.daemon.pushing import orders
from shapleyprio.store import ExceptionRow, Store


@click.command
@click.argument("jobid")
@config_option
@reason_option(required=False)
@click.option("--before-all", is_flag=True, help="Before the jobs of the other organizations, too.")
@click.option("--until", type=SECOND, help="When it ends at the latest.")
@click.option("--undo", is_flag=True, help="End it now.")
def command(
    jobid: str,
    config_path: Path,
    reason: str | None,
    until: int | None,
    *,
    before_all: bool,
    undo: bool,
) -> None:
    """Put the pending job JOBID before all other jobs of its organization.

    Of an array all pending tasks go first, of a heterogeneous job all components. The next cycle
    follows the order. All users see who gave it, since when and why, and so does the report of the
    month. It ends when the job starts or leaves the queue.
    """
    refuse(
        (undo and (reason is not None or before_all or until is not None), "--undo stands alone"),
        (not undo and reason is None, "--reason is missing: it is shown to all users"),
    )
    config = load_config(config_path)
    slurm = connect(config)
    cluster = cluster_of(config, slurm)
    segments, now = segments_of(config, cluster), slurm.controller().time
    if until is not None and until <= now:
        raise click.BadParameter(f"it is already {clock_time(now)}", param_hint="--until")
    with Store.open(config.store.url) as store:
        if undo:
            ended = orders.undo_first(store.cluster(cluster), jobid, now, user())
            ordered = f"{clock_time(ended[0].since)} by {ended[0].user}"
            name = visible(orders.called(ended))
            click.echo(f"Job {name} no longer goes first, as ordered at {visible(ordered)}.")
            return
        row = ExceptionRow(
            job_id=0,
            since=now,
            label=jobid,
            organization="",
            user=user(),
            reason=reason or "",
            before_all=before_all,
            until=until,
        )
        rows = orders.put_first(store.cluster(cluster), slurm, segments, row)
        with store.cluster(cluster).reading() as view:
            paused = view.orders.pause() is not None
    when = "Once steering is resumed" if paused else "With the next cycle"
    others = " and ".join(dict.fromkeys(row.others for row in rows))
    click.echo(f"{when} job {visible(orders.called(rows))} goes before {others} that are pending.")
