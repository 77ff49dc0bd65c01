"""`shapleyprio audit`: its options; what it does is in `shapleyprio.cli.auditing`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from shapleyprio.cli.extras import packages_needed
from shapleyprio.cli.replay import check_report_packages
from shapleyprio.cli.reporting import ReportRequest, report_options
from shapleyprio.cli.workloads import (
    WorkloadRequest,
    backfill_without_rigid,
    json_file_option,
    positive_seconds,
    refuse,
    refuse_missing_directories,
    refuse_the_same_file,
    scheduling_options,
    workload_options,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line; None where an option was left out.

    Attributes:
        workload: what makes the workload.
        period: seconds.
        orderings: random orderings from which to sample coalitions.
        wide, backfill: what becomes of jobs of several processors.
        cores: to compute on.
        json_file, report: what to write.
    """

    workload: WorkloadRequest
    period: int
    orderings: int | None
    wide: Literal["expand", "rigid"]
    backfill: Literal["none", "easy"]
    cores: int
    json_file: Path | None
    report: ReportRequest


def parse_period(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """Reads a positive duration."""
    return positive_seconds(text, examples="1d or 6h")


@click.command
@workload_options
@click.option(
    "--period",
    callback=parse_period,
    default="1d",
    show_default=True,
    metavar="TIME",
    help="How long the stretches are of which use and contribution are told.",
)
@click.option(
    "--orderings",
    type=click.IntRange(min=1),
    metavar="N",
    help="Sample the coalitions of N random orderings, and take rand for what is fair.  "
    "[default: all coalitions and ref; with more than 14 organizations 15 orderings]",
)
@scheduling_options
@json_file_option
@report_options
def command(**options: Any) -> None:
    """Audit LOG: how fair was what really happened?

    LOG is a file in SWF (also .gz, .xz), the text of an sacct export, or the daemon's store, with
    the starts of its jobs. The recorded schedule is held against ref (fair by definition),
    directcontr and fairshare, which schedule the same jobs from an empty system on.

    Shown are, at the window's end: by how much each organization's work came too early or too
    late; who worked for whom, in processor-hours; what everybody contributed and used as time went
    by; and whether some organizations would have had more alone, with their own nodes.
    """
    request = Request(
        workload=WorkloadRequest.taken_from(options),
        report=ReportRequest.taken_from(options),
        **options,
    )
    refuse(backfill_without_rigid(request.wide, request.backfill))
    refuse_the_same_file(("--json", request.json_file), ("--report", request.report.file))
    refuse_missing_directories(("--json", request.json_file))
    with packages_needed("audit", "replay"):
        from shapleyprio.cli.auditing import audit_log
    check_report_packages(request.report)
    audit_log(request)
