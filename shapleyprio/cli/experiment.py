"""`shapleyprio experiment`: its options; what it does is in `shapleyprio.cli.experimenting`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from shapleyprio.cli.common import sigterm_unwinds
from shapleyprio.cli.extras import packages_needed
from shapleyprio.cli.replay import check_report_packages
from shapleyprio.cli.reporting import ReportRequest, report_options
from shapleyprio.cli.workloads import (
    backfill_without_rigid,
    json_file_option,
    positive_seconds,
    refuse,
    refuse_missing_directories,
    refuse_the_same_file,
)
from shapleyprio.experiment.presets import PRESETS

SLURM_WORKERS = 8

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line; None or empty where an option was left out.

    Attributes:
        logs: files, directories (for a preset) or URLs of stores.
        preset: a paper's experiment.
        exhibits: which of the paper's tables, figures or scenarios.
        policies: in the order given.
        windows: how many of each log.
        length: of a window, seconds.
        deals: of each window.
        organizations: numbers to deal out to.
        shares: how to deal processors out.
        processors: how many to deal out.
        wide, backfill: what becomes of jobs of several processors.
        seed: of all random draws.
        cores: to compute on.
        dask: address of a scheduler, or "slurm".
        workers: jobs of Slurm to start.
        keep: directory for finished cells.
        results_file, json_file, report: what to write.
    """

    logs: tuple[str, ...]
    preset: str | None
    exhibits: tuple[str, ...]
    policies: tuple[str, ...]
    windows: int | None
    length: int | None
    deals: int | None
    organizations: Counts | None
    shares: tuple[Literal["zipf", "uniform"], ...]
    processors: int | None
    wide: Literal["expand", "rigid"] | None
    backfill: Literal["none", "easy"] | None
    seed: int
    cores: int | None
    dask: str | None
    workers: int | None
    keep: Path | None
    results_file: Path | None
    json_file: Path | None
    report: ReportRequest

    @property
    def cores_or_all(self) -> int:
        """The cores to compute on: all, unless told otherwise."""
        return self.cores or len(os.sched_getaffinity(0))


def parse_length(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    """Reads a positive duration."""
    return None if text is None else positive_seconds(text, examples="50000 or 14h")


class Counts(tuple[int, ...]):
    """Numbers, in words as they are typed."""

    __slots__ = ()

    def __str__(self) -> str:
        return ",".join(map(str, self))


def parse_counts(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> Counts | None:
    """Reads positive numbers with commas."""
    if text is None:
        return None
    counts = [int(one) if one.strip().isdecimal() else 0 for one in text.split(",")]
    if 0 in counts:
        raise click.BadParameter(f"{text!r} is not K or K,K,...; write for instance 5 or 2,5,8")
    return Counts(counts)


@click.command
@click.argument("logs", metavar="LOG...", nargs=-1)
@click.option(
    "--preset", type=click.Choice(list(PRESETS)), help="Do a paper's experiment with these logs."
)
@click.option(
    "--exhibit",
    "exhibits",
    multiple=True,
    metavar="NAME",
    help="Of the preset: a table, figure or scenario; give it several times.  [default: all]",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help="Policy to compare; give it several times. rand-N is rand with N orderings.  [default: "
    "rand, directcontr, fairshare, utfairshare, currfairshare, roundrobin]",
)
@click.option(
    "--windows",
    type=click.IntRange(min=1),
    metavar="N",
    help="Windows to draw of each log; for a preset, also periods or instances.  [default: 100, "
    "or as in the paper]",
)
@click.option(
    "--length", callback=parse_length, metavar="TIME", help="Of a window.  [default: 50000]"
)
@click.option(
    "--deals",
    type=click.IntRange(min=1),
    metavar="D",
    help="How often to deal the users out in each window.  [default: 1]",
)
@click.option(
    "--deal-users",
    "organizations",
    callback=parse_counts,
    metavar="K,K,...",
    help="Deal the users out to K organizations; each K is a group.  [default: 5]",
)
@click.option(
    "--processor-shares",
    "shares",
    multiple=True,
    type=click.Choice(["zipf", "uniform"]),
    help="How to deal the processors out; given twice, each is a group.  [default: zipf]",
)
@click.option(
    "--processors",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many to deal out.  [default: what the log tells]",
)
@click.option(
    "--wide",
    type=click.Choice(["expand", "rigid"]),
    help="A job of q processors becomes q sequential copies, or needs all q at once.  "
    "[default: expand]",
)
@click.option(
    "--backfill",
    type=click.Choice(["none", "easy"]),
    help="What may pass a rigid job that does not fit.  [default: none]",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    metavar="S",
    default=0,
    show_default=True,
    help="Of all random draws.",
)
@click.option(
    "--cores",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cores of this machine to compute on.  [default: all]",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Compute on the workers of that Dask scheduler instead; slurm: start some on Slurm.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"With --dask slurm: jobs to start.  [default: {SLURM_WORKERS}]",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep finished cells in that directory, and go on from those that are kept there.",
)
@click.option(
    "--results",
    "results_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a row for each window and policy there, as .parquet or .csv.",
)
@json_file_option
@report_options
def command(**options: Any) -> None:
    """Compare policies over many windows of LOG..., and sum up.

    Windows are drawn at random, the log's users and processors are dealt out to organizations,
    and every policy is held against ref: by how many seconds a part of work came too early or too
    late on average (Δψ/p_tot). Shown are, for each log, shares and number of organizations, the
    mean with its 95 % bootstrap interval, standard deviation and median, and in how many windows
    a policy was the fairest, alone (wins) or with others (ties).

    LOG is a file as for `shapleyprio replay`, or a store. The presets do a paper's experiments:
    they take their logs, by the names these have in the Parallel Workloads Archive, out of the
    files and directories given.
    """
    request = Request(report=ReportRequest.taken_from(options), **options)
    refuse_contradictions(request)
    with packages_needed("experiment"):
        from shapleyprio.cli.experimenting import experiment
    check_report_packages(request.report)
    try:
        with sigterm_unwinds():
            experiment(request)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def refuse_contradictions(request: Request) -> None:
    """Raises a usage error for options that do not go together."""
    general = {
        "--policy": request.policies,
        "--length": request.length,
        "--deals": request.deals,
        "--deal-users": request.organizations,
        "--processor-shares": request.shares,
        "--processors": request.processors,
        "--wide": request.wide,
        "--backfill": request.backfill,
    }
    refuse(
        (not request.logs and request.preset is None, "name at least one LOG, or a --preset"),
        *(
            (request.preset is not None and value, f"the preset sets {option}; leave it out")
            for option, value in general.items()
        ),
        (request.exhibits and request.preset is None, "--exhibit goes with --preset"),
        backfill_without_rigid(request.wide, request.backfill),
        (request.dask is not None and request.cores, "--cores does not go with --dask"),
        (request.workers and request.dask != "slurm", "--workers goes with --dask slurm"),
        (
            request.keep is not None and any("://" in log for log in request.logs),
            "--keep goes with files only: a store grows, and cells kept would be of another log",
        ),
    )
    refuse_the_same_file(
        ("--json", request.json_file),
        ("--results", request.results_file),
        ("--report", request.report.file),
    )
    refuse_missing_directories(("--json", request.json_file), ("--results", request.results_file))
