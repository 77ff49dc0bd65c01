"""Errors in the words of the command line: what is refused at once, and what mends the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click
from click.core import ParameterSource

from shapleyprio.cli.options.json_output import STDOUT
from shapleyprio.common.errors import KnownError, Remedy, ReplayError
from shapleyprio.replay.workloads.layout import ASK_ACCOUNTS, ASK_NODES


def refuse(*contradictions: tuple[object, str]) -> None:
    """Raises a usage error for the first contradiction that is true."""
    for wrong, message in contradictions:
        if wrong:
            raise click.UsageError(message)


def is_given(name: str) -> bool:
    """Returns whether the command that is called was given an option.

    Args:
        name: of its parameter.
    """
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def refuse_the_same_file(
    *written: tuple[str, Path | None], read: Iterable[tuple[str, Path | None]] = ()
) -> None:
    """Raises a usage error if a file (by option) that is written is another one, too."""
    options = {os.path.realpath(file): option for option, file in read if file is not None}
    for option, file in written:
        if file not in (None, STDOUT):
            other = options.setdefault(os.path.realpath(file), option)
            refuse((other != option, f"{other} and {option} name the same file"))


def refuse_missing_directories(*files: tuple[str, Path | None]) -> None:
    """Raises a usage error for a file (by option) that has no directory to be written in."""
    for option, file in files:
        if file not in (None, STDOUT) and not file.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no directory {file.parent}", param_hint=option)


EXTRAS = {
    "replay": frozenset({"numpy"}),
    "trial": frozenset({"numpy", "psutil"}),
    "report": frozenset({"jinja2", "markupsafe", "vl_convert"}),
}
"""Extra of the package -> what it brings."""


@contextmanager
def packages_needed(what: str, extra: str | None = None) -> Iterator[None]:
    """Says how to install the packages without which a command or an option cannot work.

    Args:
        what: the command or option.
        extra: that brings them; None if it has the command's name.

    Raises:
        ReplayError: one of them is missing.
    """
    extra = extra or what
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS[extra]:
            raise
        raise ReplayError(
            f"{what} needs more packages: install the package shapleyprio-replay, "
            f"or pip install 'shapleyprio[{extra}]'"
        ) from None


WORKLOAD_REMEDIES: Mapping[Remedy, str] = {
    Remedy.SHORTER_WINDOW: "choose a shorter --window",
    Remedy.WINDOW_AT_MOST: "choose a --window of {bound} s at most",
    Remedy.OTHER_WINDOW: "choose another --window, or check the organizations",
    Remedy.NAME_ORGANIZATIONS: "name the organizations in a file, given with --organizations",
    Remedy.DEAL_USERS: "or deal out users and processors with --deal-users",
    Remedy.NAME_PROCESSORS: "give --processors N",
    Remedy.PART_OF_LOG: "read only part of it with --since and --until",
    Remedy.SECONDS_OF_WINDOW: "use --window instead of --since and --until",
    Remedy.ALLOW: "or go on with --allow {bound}",
    Remedy.GIVE_NODES: f"give --nodes FILE, which `{ASK_NODES}` prints, or go on with "
    "--allow {bound}",
    Remedy.GIVE_ACCOUNTS: f"give --accounts FILE, which `{ASK_ACCOUNTS}` prints, or go on with "
    "--allow {bound}",
    Remedy.GIVE_TREE: f"or give --accounts FILE, which `{ASK_ACCOUNTS}` prints",
}
"""Remedies of commands that make one workload of a log."""

COMMAND_REMEDIES: Mapping[str, Mapping[Remedy, str]] = {
    "daemon": {
        Remedy.STAND_BY: "or run `shapleyprio daemon --standby`, which takes over when it ends",
    },
    "replay": {
        **WORKLOAD_REMEDIES,
        Remedy.SAMPLE: "sample with --policy rand",
        Remedy.FEWER_ORDERINGS: "choose fewer --orderings, or a larger --epsilon",
    },
    "audit": {
        **WORKLOAD_REMEDIES,
        Remedy.PERIOD_AT_LEAST: "choose a --period of {bound} s at least",
        Remedy.SAMPLE: "sample coalitions with --orderings N",
        Remedy.FEWER_ORDERINGS: "choose fewer --orderings",
        Remedy.NO_STARTS_NEEDED: "`shapleyprio replay` does without",
    },
    "experiment": {
        Remedy.SHORTER_WINDOW: "choose a shorter --length",
        Remedy.WINDOW_AT_MOST: "choose a shorter --length",
        Remedy.LONGER_WINDOW: "choose a longer --length",
        Remedy.OTHER_WINDOW: "choose a longer --length",
        Remedy.FEWER_WINDOWS: "choose --windows 1, or a shorter --length",
        Remedy.SAMPLE: "choose smaller numbers for --deal-users",
        Remedy.NAME_PROCESSORS: "give --processors N",
        Remedy.FEWER_CORES: "run again with fewer --cores (cells kept by --keep are not run again)",
    },
    "trial": {
        **WORKLOAD_REMEDIES,
        Remedy.SAMPLE: "choose fewer organizations, with --deal-users or in --organizations",
    },
    "rehearse": {
        Remedy.SHORTER_WINDOW: "choose fewer --days",
        Remedy.OTHER_WINDOW: "choose another --from, or check the organizations",
        Remedy.GIVE_TREE: "or give --associations FILE, which `sacctmgr dump` writes",
    },
    "trials": {
        Remedy.SHORTER_WINDOW: "choose a shorter `window` in LIST",
        Remedy.WINDOW_AT_MOST: "choose a `window` of {bound} s at most in LIST",
        Remedy.OTHER_WINDOW: "choose another `window` in LIST, or check the organizations",
        Remedy.NAME_ORGANIZATIONS: "name the organizations in a file, `organizations` in LIST",
        Remedy.DEAL_USERS: "or deal out users and processors by `deal-users` in LIST",
        Remedy.NAME_PROCESSORS: "give `processors` in LIST",
        Remedy.ALLOW: "or go on with `allow` of {bound} in LIST",
        Remedy.GIVE_NODES: f"give `nodes` in LIST, a file that `{ASK_NODES}` prints, or go on with "
        "`allow` of {bound}",
        Remedy.GIVE_ACCOUNTS: f"give `accounts` in LIST, a file that `{ASK_ACCOUNTS}` prints, or "
        "go on with `allow` of {bound}",
        Remedy.GIVE_TREE: f"or give `accounts` in LIST, a file that `{ASK_ACCOUNTS}` prints",
        Remedy.SAMPLE: "choose fewer organizations, by `deal-users` or `organizations` in LIST",
    },
}
"""Command -> remedy -> how its options bring it about; other commands have nothing to offer."""


def remedies_of(command: str | None) -> Mapping[Remedy, str]:
    """Returns the words for the remedies of a command's errors."""
    return COMMAND_REMEDIES.get(command or "", {})


def message_of(error: Exception, command: str | None) -> str:
    """Returns what a command that failed says on standard error.

    Args:
        error: that ended the command.
        command: its name.
    """
    if isinstance(error, KnownError):
        return error.worded(remedies_of(command))
    if isinstance(error, MemoryError):
        return "that takes more memory than there is; take a smaller log or a shorter window"
    if isinstance(error, OSError) and error.filename is not None:
        return (
            f"{error.filename}: {error.strerror}; check the name, and whether you may read the "
            "file and enter its directories"
        )
    return str(error)
