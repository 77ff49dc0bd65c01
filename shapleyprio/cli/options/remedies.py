"""The remedies of errors in the words of the command line: its options."""

from __future__ import annotations

from collections.abc import Mapping

from shapleyprio.common.errors import KnownError, Remedy
from shapleyprio.replay.workloads.layout import ASK_ACCOUNTS, ASK_NODES

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
        Remedy.OTHER_PLACEMENT: "choose another --placement",
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
