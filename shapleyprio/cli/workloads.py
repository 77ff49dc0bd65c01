"""What commands on logs have in common: which log, whose jobs, which window, how scheduled."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import click
from pytimeparse2 import parse as parse_duration

STDOUT = Path("-")

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])


def parse_window(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """Reads START:LENGTH, in seconds or with units as in 10d:12h."""
    if text is None:
        return None
    match [seconds_in(part) for part in text.split(":")]:
        case [int(start), int(length)] if length > 0:
            return start, length
    raise click.BadParameter(f"{text!r} is not START:LENGTH; write for instance 0:50000 or 10d:12h")


def seconds_in(text: str) -> int | None:
    """Whole seconds, such as 90 or 1m30s; None for anything else."""
    seconds = parse_duration(text) if text else None
    return int(seconds) if seconds is not None and 0 <= seconds == int(seconds) else None


def positive_seconds(text: str, *, examples: str) -> int:
    """A duration above zero, or a usage error that names some."""
    if not (seconds := seconds_in(text)):
        raise click.BadParameter(f"{text!r} is no duration; write for instance {examples}")
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRequest:
    """What was asked for on the command line; None where an option was left out.

    Attributes:
        log: file, or URL of a store.
        log_format, fields, time_zone, cluster, strict: how to read it.
        organizations: file with their tables.
        deal_users, processor_shares, processors: how to deal users and processors out instead.
        seed: of all random draws.
        window: seconds from the log's first release, and length.
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
    window: tuple[int, int] | None

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Self:
        """Takes its own out of a command's options, and leaves the others.

        Raises:
            click.UsageError: options do not go together.
        """
        request = cls(**{field.name: options.pop(field.name) for field in fields(cls)})
        refuse(
            (
                (request.organizations is None) == (request.deal_users is None),
                "say whose the jobs are: either --organizations FILE or --deal-users K",
            ),
            (
                request.deal_users is None and (request.processor_shares or request.processors),
                "--processor-shares and --processors go with --deal-users; with --organizations, "
                "each table says `processors = N`",
            ),
        )
        return request


OPTIONS: tuple[Callable[[AnyCommand], AnyCommand], ...] = (
    click.argument("log"),
    click.option(
        "--organizations",
        type=click.Path(path_type=Path, dir_okay=False),
        help="File with [[organization]] tables, such as the daemon's.",
    ),
    click.option(
        "--deal-users",
        type=click.IntRange(min=1),
        metavar="K",
        help="Deal the log's users out to K organizations instead.",
    ),
    click.option(
        "--processor-shares",
        type=click.Choice(["zipf", "uniform"]),
        help="How to deal the processors out.  [default: zipf]",
    ),
    click.option(
        "--processors",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many to deal out.  [default: what the log tells]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        metavar="S",
        default=0,
        show_default=True,
        help="Of all random draws.",
    ),
    click.option(
        "--window",
        callback=parse_window,
        metavar="START:LENGTH",
        help="Jobs to take: seconds (or 10d:12h) from the log's first release.  [default: all]",
    ),
    click.option(
        "--format",
        "log_format",
        type=click.Choice(["auto", "swf", "sacct", "store"]),
        default="auto",
        show_default=True,
        help="What LOG is.",
    ),
    click.option(
        "--fields",
        metavar="A,B,C",
        help="Columns of an sacct export without a header line.  [default: Open XDMoD's]",
    ),
    click.option("--time-zone", help="Of the times in an sacct export.  [default: UTC]"),
    click.option("--cluster", help="Which one of a store that holds several."),
    click.option("--strict", is_flag=True, help="Take a malformed line as an error."),
)


def workload_options(command: AnyCommand) -> AnyCommand:
    """Adds what makes a workload; `WorkloadRequest.taken_from` takes it from the options."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


SCHEDULING_OPTIONS: tuple[Callable[[AnyCommand], AnyCommand], ...] = (
    click.option(
        "--wide",
        type=click.Choice(["expand", "rigid"]),
        default="expand",
        show_default=True,
        help="A job of q processors becomes q sequential copies, or needs all q at once.",
    ),
    click.option(
        "--backfill",
        type=click.Choice(["none", "easy"]),
        default="none",
        show_default=True,
        help="What may pass a rigid job that does not fit.",
    ),
    click.option(
        "--cores",
        type=click.IntRange(min=1),
        default=lambda: len(os.sched_getaffinity(0)),
        metavar="N",
        help="Cores to compute on.  [default: all]",
    ),
)


def scheduling_options(command: AnyCommand) -> AnyCommand:
    """Adds how jobs are scheduled anew; the command gets `wide`, `backfill` and `cores`."""
    for option in reversed(SCHEDULING_OPTIONS):
        command = option(command)
    return command


def backfill_without_rigid(wide: str | None, backfill: str | None) -> tuple[bool, str]:
    """A contradiction for `refuse`; None is an option that was left out."""
    return (
        backfill == "easy" and wide != "rigid",
        "--backfill goes with --wide rigid; sequential copies leave nothing to pass",
    )


def json_file_option(command: AnyCommand) -> AnyCommand:
    """Adds --json; the command gets `json_file`."""
    return click.option(
        "--json",
        "json_file",
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
        help="Write the results there as JSON; - for standard output, without the tables.",
    )(command)


def refuse(*contradictions: tuple[object, str]) -> None:
    """Raises a usage error for the first one that is true."""
    for wrong, message in contradictions:
        if wrong:
            raise click.UsageError(message)


def make_directory(option: str, directory: Path) -> None:
    """Makes a directory that was named in an option, unless it is there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(
            f"{directory} cannot be made ({error.strerror})", param_hint=option
        ) from None


def refuse_the_same_file(*files: tuple[str, Path | None]) -> None:
    """Raises a usage error if two files (by option) are one."""
    options: dict[Path, str] = {}
    for option, file in files:
        if file not in (None, STDOUT):
            other = options.setdefault(file.absolute(), option)
            refuse((other != option, f"{other} and {option} name the same file"))


def refuse_missing_directories(*files: tuple[str, Path | None]) -> None:
    """Finds out before anything is computed whether files (by option) can be written."""
    for option, file in files:
        if file not in (None, STDOUT) and not file.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no directory {file.parent}", param_hint=option)
