"""`shapleyprio replay`: its options; what it does is in `shapleyprio.cli.replaying`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
from pytimeparse2 import parse as parse_duration

from shapleyprio.errors import ReplayError

STDOUT = Path("-")
PACKAGES = frozenset({"llvmlite", "numba", "numpy", "pandas"})
"""What the extra ``replay`` brings."""


def parse_window(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """Reads START:LENGTH, in seconds or with units as in 10d:12h."""
    if text is None:
        return None
    match [_seconds(part) for part in text.split(":")]:
        case [int(start), int(length)] if length > 0:
            return start, length
    raise click.BadParameter(f"{text!r} is not START:LENGTH; write for instance 0:50000 or 10d:12h")


def _seconds(text: str) -> int | None:
    seconds = parse_duration(text) if text else None
    return int(seconds) if seconds is not None and 0 <= seconds == int(seconds) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for on the command line; None where an option was left out.

    Attributes:
        log: file, or URL of a store.
        log_format, fields, time_zone, cluster, strict: how to read it.
        organizations: file with their tables.
        deal_users, processor_shares, processors: how to deal users and processors out instead.
        seed: of all random draws.
        policies: in the order given; empty for the usual ones.
        orderings, epsilon, confidence: how exact Rand is.
        window: seconds from the log's first release, and length.
        wide, backfill: what becomes of jobs of several processors.
        cores: to compute on.
        json_file, schedule_file: what to write.
    """

    log: str
    log_format: Literal["auto", "swf", "sacct", "store"]
    fields: str | None
    time_zone: str | None
    cluster: str | None
    strict: bool
    organizations: Path | None
    deal_users: int | None
    processor_shares: Literal["zipf", "uniform"] | None
    processors: int | None
    seed: int
    policies: tuple[str, ...]
    orderings: int | None
    epsilon: float | None
    confidence: float | None
    window: tuple[int, int] | None
    wide: Literal["expand", "rigid"]
    backfill: Literal["none", "easy"]
    cores: int
    json_file: Path | None
    schedule_file: Path | None


@click.command
@click.argument("log")
@click.option(
    "--organizations",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with [[organization]] tables, such as the daemon's.",
)
@click.option(
    "--deal-users",
    type=click.IntRange(min=1),
    metavar="K",
    help="Deal the log's users out to K organizations instead.",
)
@click.option(
    "--processor-shares",
    type=click.Choice(["zipf", "uniform"]),
    help="How to deal the processors out.  [default: zipf]",
)
@click.option(
    "--processors",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many to deal out.  [default: what the log tells]",
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
    "--window",
    callback=parse_window,
    metavar="START:LENGTH",
    help="Jobs to take: seconds (or 10d:12h) from the log's first release.  [default: all]",
)
@click.option(
    "--wide",
    type=click.Choice(["expand", "rigid"]),
    default="expand",
    show_default=True,
    help="A job of q processors becomes q sequential copies, or needs all q at once.",
)
@click.option(
    "--backfill",
    type=click.Choice(["none", "easy"]),
    default="none",
    show_default=True,
    help="What may pass a rigid job that does not fit.",
)
@click.option(
    "--format",
    "log_format",
    type=click.Choice(["auto", "swf", "sacct", "store"]),
    default="auto",
    show_default=True,
    help="What LOG is.",
)
@click.option(
    "--fields",
    metavar="A,B,C",
    help="Columns of an sacct export without a header line.  [default: Open XDMoD's]",
)
@click.option("--time-zone", help="Of the times in an sacct export.  [default: UTC]")
@click.option("--cluster", help="Which one of a store that holds several.")
@click.option("--strict", is_flag=True, help="Take a malformed line as an error.")
@click.option(
    "--cores",
    type=click.IntRange(min=1),
    default=lambda: len(os.sched_getaffinity(0)),
    metavar="N",
    help="Cores to compute on.  [default: all]",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the results there as JSON; - for standard output, without the tables.",
)
@click.option(
    "--schedule",
    "schedule_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write every start there as CSV.",
)
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
    seconds the decisions took; and by how many seconds each organization's work came too early
    (or too late, if negative).
    """
    request = Request(**options)
    refuse_contradictions(request)
    with packages_needed():
        from shapleyprio.cli.replaying import replay
    replay(request)


def refuse_contradictions(request: Request) -> None:
    """Raises a usage error for options that do not go together."""
    for wrong, message in (
        (
            (request.organizations is None) == (request.deal_users is None),
            "say whose the jobs are: either --organizations FILE or --deal-users K",
        ),
        (
            request.deal_users is None and (request.processor_shares or request.processors),
            "--processor-shares and --processors go with --deal-users; with --organizations, "
            "each table says `processors = N`",
        ),
        (
            (request.epsilon is None) != (request.confidence is None),
            "--epsilon and --confidence go together",
        ),
        (
            request.orderings is not None and request.epsilon is not None,
            "--epsilon and --confidence set the number of orderings; leave --orderings out",
        ),
        (
            request.backfill != "none" and request.wide != "rigid",
            "--backfill goes with --wide rigid; sequential copies leave nothing to pass",
        ),
        (
            request.json_file is not None and request.json_file == request.schedule_file,
            "--json and --schedule name the same file",
        ),
    ):
        if wrong:
            raise click.UsageError(message)
    for option, file in (("--json", request.json_file), ("--schedule", request.schedule_file)):
        if file not in (None, STDOUT) and not file.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no directory {file.parent}", param_hint=option)


@contextmanager
def packages_needed() -> Iterator[None]:
    """Tells how to install the packages that only this command needs."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise ReplayError("replay needs more packages: pip install 'shapleyprio[replay]'") from None
