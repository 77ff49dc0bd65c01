"""`shapleyprio history`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from shapleyprio.cli.common import (
    clock_time,
    config_option,
    json_option,
    load,
    print_json,
    print_plan,
    stored_cluster,
)
from shapleyprio.drift.figures import COMPARED, drift_history
from shapleyprio.service.wording import short_number
from shapleyprio.store import Store, View


@click.command
@config_option
@json_option
@click.option("--organization", help="Only this organization's standings or drifts.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10**9),
    default=30,
    show_default=True,
    help="How many rows, the newest first.",
)
@click.option("--cycles", "what", flag_value="cycles", help="Show cycles instead of standings.")
@click.option("--pushes", "what", flag_value="pushes", help="Show writes instead of standings.")
@click.option("--drift", "what", flag_value="drift", help="Show how far from fair it was instead.")
@click.option("--job", "job_id", type=click.IntRange(min=1), help="Writes to this job only.")
def command(
    config_path: Path,
    *,
    organization: str | None,
    limit: int,
    what: str | None,
    job_id: int | None,
    as_json: bool,
) -> None:
    """Show past standings, cycles, writes or drifts, the newest first."""
    config = load(config_path)
    with (
        Store.open(config.store.url) as store,
        store.reading(stored_cluster(config, store)) as view,
    ):
        if job_id is not None or what == "pushes":
            pushes = view.pushes(limit=limit, key=None if job_id is None else str(job_id))
            if as_json:
                print_json([asdict(push) for push in pushes])
            else:
                print_plan(Console(), pushes)
        elif what == "cycles":
            _show_cycles(view, limit, as_json=as_json)
        elif what == "drift":
            _show_drifts(view, organization, limit, as_json=as_json)
        else:
            _show_standings(view, organization, limit, as_json=as_json)


def _show_cycles(view: View, limit: int, *, as_json: bool) -> None:
    cycles = view.cycles(limit=limit)
    if as_json:
        print_json([asdict(row) for row in cycles])
        return
    table = Table("cycle", "time", "outcome", "seen", "kept", "refused", "written", "message")
    for row in cycles:
        counts = [str(n) for n in (row.seen, row.kept, row.refused, row.written)]
        table.add_row(str(row.number), clock_time(row.t), row.outcome, *counts, row.message)
    Console().print(table)


def _show_drifts(view: View, organization: str | None, limit: int, *, as_json: bool) -> None:
    windows = drift_history(view, organization, limit)
    if as_json:
        print_json([window.as_json() for window in windows])
        return
    table = Table("until", "window", "organization", *COMPARED, "alone", "against")
    for one in windows:
        table.add_row(
            clock_time(one.t),
            str(timedelta(seconds=one.t - one.begin)),
            one.organization,
            *(f"{float(one.drifts[schedule]):+,.1f} s" for schedule in COMPARED),
            "-" if one.alone_gain is None else f"{float(one.alone_gain):+.1%}",
            one.reference,
        )
    Console().print(table)


def _show_standings(view: View, organization: str | None, limit: int, *, as_json: bool) -> None:
    rows = view.standings(0, organization, limit)
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    table = Table("cycle", "time", "organization", "φ̃", "ψ", "balance", "priority")
    for row in rows:
        table.add_row(
            str(row.cycle),
            clock_time(row.t),
            row.organization,
            short_number(row.contribution),
            short_number(row.utility),
            short_number(row.contribution - row.utility),
            str(row.priority),
        )
    Console().print(table)
