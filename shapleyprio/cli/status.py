"""`shapleyprio status`."""

from __future__ import annotations

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
    stored_cluster,
)
from shapleyprio.service.status import Status, read_status
from shapleyprio.service.wording import short_number
from shapleyprio.store import Store


@click.command
@config_option
@json_option
def command(config_path: Path, *, as_json: bool) -> None:
    """Show every organization's standing after the last cycle.

    The first is served next. Shown are its share of the processors, what it contributed (φ̃) and
    used (ψ) in part-seconds, the balance φ̃ − ψ, its drift (by how many seconds each part of work
    done came too early, or too late if negative, on average over all parts, with φ̃ as the
    yardstick), the priority points that its jobs get, and how many wait and run.
    """
    config = load(config_path)
    with Store.open(config.store.url) as store:
        status = read_status(store, stored_cluster(config, store))
    if as_json:
        print_json(status.as_json())
    else:
        render(Console(), status)


def render(console: Console, status: Status) -> None:
    """Prints the table and what an admin should know of the last cycle."""
    cycle = status.cycle
    console.print(f"{status.cluster}, {clock_time(cycle.t)}", highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="underline")
    table.add_column("organization", no_wrap=True)
    for heading in ("nodes", "φ̃", "ψ", "balance", "drift", "priority", "pending", "running"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in status.rows:
        table.add_row(
            row.organization,
            f"{row.share:.1%}",
            short_number(row.contribution),
            short_number(row.utility),
            short_number(row.balance),
            f"{row.drift_seconds:+.0f} s",
            f"{row.priority}",
            f"{row.pending}",
            f"{row.running}",
        )
    console.print(table)
    console.print(
        f"last cycle {cycle.number}: {cycle.outcome}, {cycle.seen} records read, "
        f"{cycle.written} priorities written"
    )
    if status.failure is not None:
        console.print(f"since then: cycle {status.failure.number} failed: {status.failure.message}")
    for line in status.kept_aside:
        console.print(
            f"kept aside {line.times}×: {line.line.source}: {line.line.reason}: {line.line.text}",
            markup=False,
            highlight=False,
        )
