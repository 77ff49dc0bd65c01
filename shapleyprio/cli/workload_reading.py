"""Makes the workload that `replay` and `trial` were asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from shapleyprio.cli.progress import Told
from shapleyprio.cli.workloads import WorkloadRequest
from shapleyprio.replay.deal import deal
from shapleyprio.replay.log import Log
from shapleyprio.replay.organizations import consortium_of, load_organizations
from shapleyprio.replay.reading import read_log
from shapleyprio.replay.sacct import XDMOD_FIELDS
from shapleyprio.replay.workload import (
    Backfill,
    Consortium,
    Placement,
    Wide,
    Window,
    Workload,
    whole_log,
    workload_of,
)

MALFORMED_SHOWN = 5

Bar = Callable[[str, int | None], Told]


def workload_for(
    request: WorkloadRequest,
    bar: Bar,
    *,
    wide: Wide = "expand",
    backfill: Backfill = "none",
    placement: Placement = "random",
) -> tuple[Log, Workload]:
    """Reads the log and takes the workload out of it.

    Args:
        request: what was asked for.
        bar: makes a bar that shows how far reading is.
        wide: what becomes of jobs of several processors.
        backfill: what may pass a rigid job that does not fit.
        placement: whose free processors a job gets.

    Raises:
        ReplayError, ConfigError: it cannot be had.
        click.UsageError: the request does not fit the log.
    """
    log = read(request, bar)
    consortium = consortium_for(request, log)
    window = window_of(request, log)
    workload = workload_of(
        log, consortium, window=window, wide=wide, backfill=backfill, placement=placement
    )
    return log, workload


def complain(log: Log) -> None:
    """Tells of malformed lines."""
    for line in log.malformed[:MALFORMED_SHOWN]:
        click.echo(f"shapleyprio: {log.source}:{line.number}: {line.reason}", err=True)


def read(request: WorkloadRequest, bar: Bar) -> Log:
    """Reads the log."""
    file = Path(request.log)
    size = file.stat().st_size if file.is_file() else None
    log = read_log(
        request.log,
        format=None if request.log_format == "auto" else request.log_format,
        fields=XDMOD_FIELDS if request.fields is None else split_fields(request.fields),
        time_zone=request.time_zone or "UTC",
        cluster=request.cluster,
        strict=request.strict,
        progress=bar("reading", size),
    )
    for option, value, wanted in (
        ("--fields", request.fields, "sacct"),
        ("--time-zone", request.time_zone, "sacct"),
        ("--cluster", request.cluster, "store"),
    ):
        if value is not None and log.format != wanted:
            raise click.UsageError(
                f"{option} goes with the format {wanted}, and {log.source} is read as {log.format}"
            )
    return log


def split_fields(text: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(field.strip() for field in text.split(","))


def consortium_for(request: WorkloadRequest, log: Log) -> Consortium:
    """Whose the jobs and the processors are."""
    if request.organizations is not None:
        return consortium_of(log, load_organizations(request.organizations))
    assert request.deal_users is not None
    processors = request.processors or log.system_processors
    if processors is None:
        raise click.UsageError(
            f"{log.source} does not tell how many processors the system had; say --processors N"
        )
    shares = request.processor_shares or "zipf"
    return deal(log, request.deal_users, shares=shares, processors=processors, seed=request.seed)


def window_of(request: WorkloadRequest, log: Log) -> Window:
    """The window in the log's own seconds."""
    whole = whole_log(log)
    if request.window is None:
        return whole
    start, length = request.window
    return Window(start=whole.start + start, length=length)
