"""`shapleyprio trial`: its options; what it does is in `shapleyprio.cli.trialling`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from shapleyprio.cli.common import sigterm_unwinds
from shapleyprio.cli.extras import packages_needed
from shapleyprio.cli.workloads import (
    WorkloadRequest,
    json_file_option,
    positive_seconds,
    refuse,
    refuse_missing_directories,
    workload_options,
)
from shapleyprio.trial.arms import ARMS, USUAL_ARMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line; None where an option was left out.

    Attributes:
        workload: what makes the workload.
        arms: names, in the order given; empty for the usual ones.
        speed: cluster seconds per real second.
        poll_interval: seconds from one of the daemon's cycles to the next.
        new_jobs_interval: seconds from one of its looks for new jobs to the next; None for never.
        side_by_side: how many arms run at once.
        keep: directory for logs and databases.
        json_file: what to write.
        jobs: whether to write a row for each job, too.
    """

    workload: WorkloadRequest
    arms: tuple[str, ...]
    speed: int
    poll_interval: int
    new_jobs_interval: int | None
    side_by_side: int
    keep: Path | None
    json_file: Path | None
    jobs: bool


def parse_interval(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """Reads a positive duration."""
    return positive_seconds(text, examples="30s or 5m")


def parse_interval_or_off(context: click.Context, option: click.Parameter, text: str) -> int | None:
    """Reads a positive duration, or "off" as None."""
    return None if text == "off" else parse_interval(context, option, text)


keep_option = click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep logs and databases there (a new or empty directory with a short path).",
)


@click.command
@workload_options
@click.option(
    "--arm",
    "arms",
    multiple=True,
    type=click.Choice(list(ARMS)),
    help=f"What to run; give it several times.  [default: {', '.join(USUAL_ARMS)}]",
)
@click.option(
    "--poll-interval",
    callback=parse_interval,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="From one cycle of the daemon to the next, on the cluster's clock.",
)
@click.option(
    "--new-jobs-interval",
    callback=parse_interval_or_off,
    default="5s",
    show_default=True,
    metavar="TIME",
    help="From one look of the daemon for new jobs to the next, on the cluster's clock, or off.",
)
@click.option(
    "--speed",
    type=click.IntRange(1, 100),
    default=60,
    show_default=True,
    help="Cluster seconds per real second.",
)
@click.option(
    "--side-by-side",
    type=click.IntRange(min=1),
    default=2,
    metavar="N",
    show_default=True,
    help="How many arms to run at once.",
)
@keep_option
@json_file_option
@click.option("--jobs", is_flag=True, help="With --json: a row for each job of each arm, too.")
def command(**options: Any) -> None:
    """Run the jobs of LOG through a private real Slurm, once for each arm.

    LOG is what `shapleyprio replay` takes. Its jobs are submitted at their release, on an
    accelerated clock, and last as long as they did; a job of q processors becomes q jobs of one,
    as in the papers. The scheduler knows only a generous time limit. Every organization brings
    one node with its processors.

    \b
    slurm-fairshare          Slurm's own fair share (Fair Tree), shares by processors
    fifo                     first come, first served
    shapleyprio-site-factor  this daemon, by site factor
    shapleyprio-nice         this daemon, by nice
    shapleyprio-qos          this daemon, by priority of QOS

    Shown are, from Slurm's accounting at the window's end, the unfairness Δψ/p_tot against ref,
    waits, utilization, and how much later than released jobs were submitted; beside them what
    simulated policies make of the same jobs. Needs neither a configuration nor a cluster.
    """  # noqa: D301 - click looks for the character \b
    request = request_of(options)
    with packages_needed("trial"):
        from shapleyprio.cli.trialling import trial
    try:
        with sigterm_unwinds():
            trial(request)
    except KeyboardInterrupt:
        sys.exit(130)


def request_of(options: dict[str, Any]) -> Request:
    """What the command's options ask for.

    Raises:
        click.UsageError: they do not go together.
    """
    request = Request(workload=WorkloadRequest.taken_from(options), **options)
    refuse(
        (request.jobs and request.json_file is None, "--jobs goes with --json"),
        (len(set(request.arms)) < len(request.arms), "the same --arm is named twice"),
        in_use(request.keep),
    )
    refuse_missing_directories(("--json", request.json_file))
    return request


def in_use(keep: Path | None) -> tuple[bool, str]:
    """Whether the directory to keep logs in has something in it, and what to say then."""
    used = keep is not None and keep.is_dir() and any(keep.iterdir())
    return used, f"--keep: {keep} is not empty; name a new directory"
