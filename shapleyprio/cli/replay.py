"""`shapleyprio replay`: its options; what it does is in `shapleyprio.cli.replaying`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from shapleyprio.cli.extras import packages_needed
from shapleyprio.cli.reporting import ReportRequest, report_options
from shapleyprio.cli.workloads import (
    WorkloadRequest,
    backfill_without_rigid,
    json_file_option,
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
        policies: in the order given; empty for the usual ones.
        orderings, epsilon, confidence: how exact Rand is.
        wide, backfill: what becomes of jobs of several processors.
        placement: whose free processors a job gets.
        cores: to compute on.
        json_file, schedule_file, report: what to write.
    """

    workload: WorkloadRequest
    policies: tuple[str, ...]
    orderings: int | None
    epsilon: float | None
    confidence: float | None
    wide: Literal["expand", "rigid"]
    backfill: Literal["none", "easy"]
    placement: Literal["random", "least-loaded", "recorded"]
    cores: int
    json_file: Path | None
    schedule_file: Path | None
    report: ReportRequest


@click.command
@workload_options
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help="Policy to replay; give it several times.  [default: ref (rand with more than 12 "
    "organizations), directcontr, fairshare, and recorded if the log tells starts]",
)
@click.option(
    "--orderings",
    type=click.IntRange(min=1),
    metavar="N",
    help="Random orderings that rand samples.  [default: 15]",
)
@click.option(
    "--epsilon",
    type=click.FloatRange(min=0, min_open=True),
    help="So far rand may be from ref, as a part of all utility, and ...",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="... with what probability: sets the orderings as Theorem 5.6 has it.",
)
@click.option(
    "--placement",
    type=click.Choice(["random", "least-loaded", "recorded"]),
    default="random",
    show_default=True,
    help="Whose free processors a job gets: any, those of who has the most free, or those that it "
    "really got, as far as they are free.",
)
@scheduling_options
@json_file_option
@click.option(
    "--schedule",
    "schedule_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write every start there as CSV.",
)
@report_options
def command(**options: Any) -> None:
    """Replay LOG under policies: what would have been fair?

    LOG is a file in SWF (also .gz, .xz), the text of an sacct export, or the daemon's store. Its
    jobs are scheduled anew by each policy, on the processors that the organizations bring, from
    an empty system on.

    The policies are ref (fair by definition), rand, directcontr, roundrobin, fairshare,
    utfairshare, currfairshare, fcfs, orig-direct, rel-direct, simpl-direct and recorded (what
    really happened); ref:flow-time, ref:turnaround, ref:utilization and ref:module:function are
    ref for another utility.

    Shown are, at the window's end: by how many seconds a part of work came too early or too late
    on average against ref (Δψ/p_tot), waits and bounded slowdown of jobs (of copies, if wide jobs
    are expanded; those that have not started count with their wait so far), utilization, and the
    seconds the decisions took; and each organization's part of Δψ/p_tot, positive where its work
    came too early.
    """
    request = Request(
        workload=WorkloadRequest.taken_from(options),
        report=ReportRequest.taken_from(options),
        **options,
    )
    refuse_contradictions(request)
    with packages_needed("replay"):
        from shapleyprio.cli.replaying import replay
    check_report_packages(request.report)
    replay(request)


def refuse_contradictions(request: Request) -> None:
    """Raises a usage error for options that do not go together."""
    refuse(
        (
            (request.epsilon is None) != (request.confidence is None),
            "--epsilon and --confidence go together",
        ),
        (
            request.orderings is not None and request.epsilon is not None,
            "--epsilon and --confidence set the number of orderings; leave --orderings out",
        ),
        backfill_without_rigid(request.wide, request.backfill),
    )
    refuse_the_same_file(
        ("--json", request.json_file),
        ("--schedule", request.schedule_file),
        ("--report", request.report.file),
    )
    refuse_missing_directories(("--json", request.json_file), ("--schedule", request.schedule_file))


def check_report_packages(request: ReportRequest) -> None:
    """Finds out before anything is computed whether a report, if wanted, can be made."""
    if request.wanted:
        with packages_needed("--report", "report"):
            import shapleyprio.report  # noqa: F401
