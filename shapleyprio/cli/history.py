"""`shapleyprio history`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from shapleyprio.cli.common import load, stored_cluster
from shapleyprio.cli.json_output import json_option, write_json
from shapleyprio.cli.options import config_option
from shapleyprio.cli.refusals import refuse
from shapleyprio.cli.tables import add_row, plan_table
from shapleyprio.drift.figures import SCHEDULES, drift_history
from shapleyprio.store import Store, View
from shapleyprio.wording import MISSING, clock_time, delay, duration, magnitude, percent

Shown = tuple[list[dict[str, Any]], Table | str]
"""Rows as JSON knows them, and as people read them."""


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
@click.option("--cycles", is_flag=True, help="Show cycles instead of standings.")
@click.option("--pushes", is_flag=True, help="Show writes instead of standings.")
@click.option("--drift", is_flag=True, help="Show how far from fair it was instead.")
@click.option("--job", "job_id", type=click.IntRange(min=1), help="Writes to this job only.")
def command(
    config_path: Path,
    *,
    organization: str | None,
    limit: int,
    job_id: int | None,
    json_file: Path | None,
    **chosen: bool,
) -> None:
    """Show past standings, cycles, writes or drifts, the newest first.

    --cycles, --pushes and --drift exclude each other. --organization goes with standings and
    drifts; --job shows writes, with or without --pushes.
    """
    what = [name for name in ("cycles", "pushes", "drift") if chosen[name]]
    writes = job_id is not None or what == ["pushes"]
    refuse(
        (len(what) > 1, f"{' and '.join(f'--{name}' for name in what)} exclude each other"),
        (job_id is not None and what not in ([], ["pushes"]), "--job goes with --pushes"),
        (
            organization is not None and (writes or what == ["cycles"]),
            "--organization goes with standings and --drift",
        ),
    )
    config = load(config_path)
    with (
        Store.open(config.store.url) as store,
        stored_cluster(config, store).reading() as view,
    ):
        if writes:
            shown = _pushes(view, job_id, limit)
        elif what == ["cycles"]:
            shown = _cycles(view, limit)
        elif what == ["drift"]:
            shown = _drifts(view, organization, limit)
        else:
            shown = _standings(view, organization, limit)
    rows, table = shown
    if write_json(json_file, rows):
        Console().print(table)


def _pushes(view: View, job_id: int | None, limit: int) -> Shown:
    pushes = view.pushes(limit=limit, key=None if job_id is None else str(job_id))
    return [asdict(push) for push in pushes], plan_table(pushes)


def _cycles(view: View, limit: int) -> Shown:
    cycles = view.cycles(limit=limit)
    counted = ("seen", "kept", "quarantined", "refused", "written", "postponed")
    table = Table("cycle", "time", "outcome", *counted, "message")
    for row in cycles:
        counts = [str(getattr(row, name)) for name in counted]
        add_row(table, str(row.number), clock_time(row.t), row.outcome, *counts, row.message)
    return [asdict(row) for row in cycles], table


def _drifts(view: View, organization: str | None, limit: int) -> Shown:
    windows = drift_history(view, organization, limit)
    table = Table("until", "window", "organization", *SCHEDULES, "alone", "against")
    for window in windows:
        table.add_row(
            clock_time(window.t),
            duration(window.t - window.begin),
            window.organization,
            # a drift above zero is too early
            *(delay(-window.drifts[schedule]) for schedule in SCHEDULES),
            MISSING if window.alone_gain is None else percent(window.alone_gain, sign="+"),
            window.reference,
        )
    return [window.as_json() for window in windows], table


def _standings(view: View, organization: str | None, limit: int) -> Shown:
    rows = view.standings(0, organization, limit)
    own_score = any(row.score != row.balance for row in rows)
    scores = ("score",) if own_score else ()
    numbers = ("priority", "pending", "running")
    table = Table("cycle", "time", "organization", "served", *scores, *numbers)
    for row in rows:
        table.add_row(
            str(row.cycle),
            clock_time(row.t),
            row.organization,
            delay(row.balance_per_part),
            *((magnitude(row.score),) if own_score else ()),
            *(str(getattr(row, name)) for name in numbers),
        )
    return [asdict(row) for row in rows], table
