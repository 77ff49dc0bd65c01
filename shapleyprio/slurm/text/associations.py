"""Reads associations and their priorities as sacctmgr and scontrol print them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shapleyprio.slurm.associations import Association
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text.values import LARGEST_ID, UnreadableError, whole

LARGEST_PRIORITY = 2**32 - 1

# UserName=root(0), UserName= for the account itself; no name of these has a blank in it
_IN_FORCE = re.compile(
    r"ClusterName=\S* Account=(?P<account>.+) UserName=(?:(?P<user>.*)\([0-9]+\))?"
    r" Partition=(?P<partition>.*) Priority=(?P<priority>[0-9]+) ID=[0-9]+"
)


# sacctmgr takes these names in a list, and what it prints of them is one line
_ASKABLE = re.compile(r"[^\s|,='\"\\]+(?: [^\s|,='\"\\]+)*")


@dataclass(frozen=True, slots=True)
class StoredAccount:
    """A line of ``sacctmgr show assoc`` about an account.

    Attributes:
        number: of its association.
        above: number of the association above; 0 for the root's.
        account: its name.
        priority: that is set at the account itself; None where none is.
    """

    number: int
    above: int
    account: str
    priority: int | None


def stored_account_line(line: str) -> StoredAccount | Malformed:
    """Reads ``ParentID|Account|Priority|ID`` of ``sacctmgr -nP show assoc WOPLimits``."""
    fields = line.split("|")
    if len(fields) != 4:
        return Malformed("sacctmgr show assoc", line, f"{len(fields)} fields instead of 4")
    above, account, priority, number = fields
    try:
        return StoredAccount(
            number=whole("ID", number, 1, LARGEST_ID),
            above=whole("ParentID", above, 0, LARGEST_ID),
            account=account,
            priority=whole("Priority", priority, 0, LARGEST_PRIORITY) if priority else None,
        )
    except UnreadableError as error:
        return Malformed("sacctmgr show assoc", line, str(error))


def is_askable(account: str) -> bool:
    r"""Returns whether sacctmgr can be asked for an account of this name, among others.

    >>> is_askable("physics.lab 2"), is_askable("x\nbeta"), is_askable("a|b")
    (True, False, False)
    """
    return account.isprintable() and _ASKABLE.fullmatch(account) is not None


def in_force_line(line: str) -> tuple[Association, int] | Malformed | None:
    """Reads a line of ``scontrol show assoc_mgr``; None for those between the associations'."""
    if not line.startswith("ClusterName="):
        return None
    found = _IN_FORCE.fullmatch(line.rstrip())
    if found is None:
        return Malformed("scontrol show assoc_mgr", line, "names no association")
    return (
        Association(found["account"], found["user"] or "", found["partition"]),
        int(found["priority"]),
    )


def coordinators_line(line: str) -> tuple[str, tuple[str, ...]] | Malformed:
    """Reads ``Account|Coordinators`` of ``sacctmgr -nP show account WithCoord``."""
    account, bar, names = line.partition("|")
    if not bar or not account or "|" in names:
        return Malformed("sacctmgr show account", line, "names no account")
    return account, tuple(name for name in names.split(",") if name)
