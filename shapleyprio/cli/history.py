"""`shapleyprio history`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.cli.options.refusals import refuse
from shapleyprio.cli.options.shared import config_option, pool_option
from shapleyprio.cli.shown.standings import after_end_table, plan_table
from shapleyprio.cli.shown.tables import Cells, FittingColumn, FittingTable, standard_output
from shapleyprio.common.wording import (
    MISSING,
    clock_time,
    delay,
    duration,
    magnitude,
    percent,
    signed_duration,
)
from shapleyprio.config import Config, load_config
from shapleyprio.daemon.drift.figures import SCHEDULES, drift_history
from shapleyprio.daemon.ledgers import stored_cluster, stored_ledgers
from shapleyprio.replay.policies import RECORDED
from shapleyprio.slurm.channels import CHANNELS, Channel
from shapleyprio.store import LATER, ClusterStore, Store, ToldForecast, View

ENDLESS = 2**62
"""Second after all others."""

KINDS = ("cycles", "pushes", "drift", "forecasts", "after_end")
"""What can be shown instead of standings."""

Shown = tuple[list[dict[str, Any]], FittingTable]
"""Rows as JSON knows them, and as people read them."""


@click.command
@config_option
@pool_option
@json_option
@click.option("--organization", help="Only this organization's standings, drifts or forecasts.")
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
@click.option(
    "--forecasts", is_flag=True, help="Show forecasts of starts, and the starts, instead."
)
@click.option(
    "--after-end",
    is_flag=True,
    help="Show the users of jobs that continued after their end instead.",
)
@click.option("--job", "job_id", type=click.IntRange(min=1), help="Writes to this job only.")
@click.option("--target", metavar="NAME", help="Writes to this account or QOS only.")
def command(
    config_path: Path,
    *,
    pool: str | None,
    organization: str | None,
    limit: int,
    job_id: int | None,
    target: str | None,
    json_file: Path | None,
    **chosen: bool,
) -> None:
    """Show past standings, cycles, writes, drifts or forecasts, the newest first.

    --cycles, --pushes, --drift, --forecasts and --after-end exclude each other. --after-end has one
    line for each user, the one with the most first. --forecasts shows the jobs that started.
    --organization goes with standings, drifts and forecasts; --job and --target show writes, with
    or without --pushes. With the channels qos and association nothing is written to jobs: --target
    shows what was written to their QOS or account.
    """
    what = [name for name in KINDS if chosen[name]]
    options = [f"--{name.replace('_', '-')}" for name in what]
    key = target if job_id is None else str(job_id)
    option = "--target" if job_id is None else "--job"
    writes = key is not None or what == ["pushes"]
    refuse(
        (len(what) > 1, f"{' and '.join(options)} exclude each other"),
        (job_id is not None and target is not None, "--job and --target exclude each other"),
        (key is not None and what not in ([], ["pushes"]), f"{option} goes with --pushes"),
        (
            organization is not None and (writes or what in (["cycles"], ["after_end"])),
            "--organization goes with standings, --drift and --forecasts",
        ),
    )
    config = load_config(config_path)
    with (
        Store.open(config.store.url) as store,
        _ledger(config, store, pool, writes=writes).reading() as view,
    ):
        if writes:
            shown = _pushes(view, key, limit, _no_writes(CHANNELS[config.push.channel], job_id))
        elif what == ["cycles"]:
            shown = _cycles(view, limit)
        elif what == ["after_end"]:
            shown = _after_end(view, limit)
        elif what == ["drift"]:
            shown = _drifts(view, organization, limit)
        elif what == ["forecasts"]:
            shown = _forecasts(view, organization, limit)
        else:
            shown = _standings(view, organization, limit)
        rows, table = shown
        known = sorted({member.name for member in config.organizations})
        refuse(
            (
                organization is not None and not rows and organization not in known,
                f"--organization: {organization!r} is neither configured nor on record; configured "
                f"are {', '.join(known)}",
            )
        )
    if write_json(json_file, rows):
        standard_output().print(table)


def _ledger(config: Config, store: Store, pool: str | None, *, writes: bool) -> ClusterStore:
    """Returns the ledger whose rows to read; writes are the cluster's, whichever it is."""
    if writes:
        return stored_ledgers(config, store, pool)[0]
    return stored_cluster(config, store, pool)


def _pushes(view: View, key: str | None, limit: int, empty: str) -> Shown:
    pushes = view.pushes.latest(limit=limit, key=key)
    table = plan_table(pushes, dated=True, empty=empty)
    return [asdict(push) for push in pushes], table


def _no_writes(channel: Channel, job_id: int | None) -> str:
    """Says that there are none, and if a job was asked for, where else its priority comes from."""
    if job_id is None:
        return "no writes on record"
    if channel.per_job:
        return f"no writes to job {job_id} on record"
    return (
        f"no writes to job {job_id} on record: with the channel {channel.name} it has the priority "
        f"of its {channel.carrier}, which `shapleyprio explain {job_id}` names; "
        f"`shapleyprio history --target {channel.carrier.upper()}` shows what was written there"
    )


def _cycles(view: View, limit: int) -> Shown:
    cycles = view.history.cycles(limit=limit)
    times = [clock_time(row.t or row.started) for row in cycles]
    counted = {"seen": 2, "kept": 1, "quarantined": 4, "refused": 5, "written": 6, "postponed": 3}
    table = FittingTable(
        [
            FittingColumn("cycle", [str(row.number) for row in cycles], leaves=7),
            FittingColumn("time", times),
            FittingColumn("outcome", [row.outcome for row in cycles], Cells.NAME),
            *(
                FittingColumn(name, [str(getattr(row, name)) for row in cycles], leaves=nth)
                for name, nth in counted.items()
            ),
            FittingColumn("message", [row.message for row in cycles], Cells.TEXT),
        ],
        empty="no cycles on record",
    )
    # one that failed may not have got so far as to know its second
    return [asdict(row) | {"t": row.t or None} for row in cycles], table


def _drifts(view: View, organization: str | None, limit: int) -> Shown:
    windows = drift_history(view.history, organization, limit)
    lengths = [duration(one.t - one.begin) for one in windows]
    gains = [one.alone_gain for one in windows]
    alone = [MISSING if gain is None else percent(gain, sign="+") for gain in gains]
    table = FittingTable(
        [
            FittingColumn("until", [clock_time(one.t) for one in windows]),
            FittingColumn("window", lengths, leaves=2),
            FittingColumn("organization", [one.organization for one in windows], Cells.NAME),
            *(
                FittingColumn(
                    schedule,
                    # a drift above zero is too early
                    [delay(-one.drifts[schedule]) for one in windows],
                    leaves=None if schedule == RECORDED else 3,
                )
                for schedule in SCHEDULES
            ),
            FittingColumn("alone", alone, leaves=4),
            FittingColumn("against", [one.reference for one in windows], Cells.NAME, leaves=1),
        ],
        empty="no drift on record",
    )
    return [one.as_json() for one in windows], table


def _forecasts(view: View, organization: str | None, limit: int) -> Shown:
    rows = view.forecasts.judged(0, limit, organization)

    def times(seconds: Iterable[int]) -> list[str]:
        return [MISSING if second == LATER else clock_time(second) for second in seconds]

    def missed(row: ToldForecast) -> str:
        return MISSING if row.median == LATER else signed_duration((row.start or 0) - row.median)

    table = FittingTable(
        [
            FittingColumn("started", times(row.start or 0 for row in rows)),
            FittingColumn("job", [str(row.job_id) for row in rows]),
            FittingColumn("organization", [row.organization for row in rows], Cells.NAME),
            FittingColumn("told", times(row.t for row in rows), leaves=2),
            FittingColumn("from", times(row.early for row in rows), leaves=1),
            FittingColumn("median", times(row.median for row in rows), leaves=4),
            FittingColumn("until", times(row.late for row in rows), leaves=3),
            FittingColumn("later", [missed(row) for row in rows]),
            FittingColumn("held", ["yes" if row.held else "no" for row in rows]),
        ],
        empty="no forecast of a job that has started is on record",
    )
    beyond = ("median", "early", "late", "drawn_early", "drawn_late")
    return [
        asdict(row)
        | {name: None for name in beyond if getattr(row, name) == LATER}
        | {"held": row.held}
        for row in rows
    ], table


def _after_end(view: View, limit: int) -> Shown:
    users = view.runs.users_after_end(0, ENDLESS, limit)
    return [asdict(one) for one in users], after_end_table(users)


def _standings(view: View, organization: str | None, limit: int) -> Shown:
    rows = view.history.standings(0, organization, limit)
    scores = [FittingColumn("score", [magnitude(row.score) for row in rows], leaves=5)]
    table = FittingTable(
        [
            FittingColumn("cycle", [str(row.cycle) for row in rows], leaves=1),
            FittingColumn("time", [clock_time(row.t) for row in rows]),
            FittingColumn("organization", [row.organization for row in rows], Cells.NAME),
            FittingColumn("balance", [signed_duration(row.balance_per_part) for row in rows]),
            *(scores if any(row.score != row.balance for row in rows) else []),
            *(
                FittingColumn(name, [str(getattr(row, name)) for row in rows], leaves=nth)
                for name, nth in {"priority": 4, "pending": 3, "running": 2}.items()
            ),
        ],
        empty="no standings on record",
    )
    return [asdict(row) for row in rows], table
