"""Reads associations and their priorities as sacctmgr and scontrol print them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shapleyprio.slurm.associations import Association
from shapleyprio.slurm.port import Malformed
from shapleyprio.slurm.text import UnreadableError, whole

LARGEST_PRIORITY = 2**32 - 1

# UserName=root(0), UserName= for the account itself; no name of these has a blank in it
_IN_FORCE = re.compile(
    r"ClusterName=\S* Account=(?P<account>.+) UserName=(?:(?P<user>.*)\([0-9]+\))?"
    r" Partition=(?P<partition>.*) Priority=(?P<priority>[0-9]+) ID=[0-9]+"
)


@dataclass(frozen=True, slots=True)
class StoredAccount:
    """A line of ``sacctmgr show assoc`` about an account.

    Attributes:
        account: its name.
        parent: the account above; None for the root.
        priority: that is set at the account itself; None where none is.
    """

    account: str
    parent: str | None
    priority: int | None


def stored_account_line(line: str) -> StoredAccount | Malformed:
    """Reads ``Account|ParentName|Priority`` of ``sacctmgr -nP show assoc WOPLimits``."""
    fields = line.split("|")
    if len(fields) != 3:
        return Malformed("sacctmgr show assoc", line, f"{len(fields)} fields instead of 3")
    account, parent, priority = fields
    try:
        return StoredAccount(
            account,
            parent or None,
            whole("Priority", priority, 0, LARGEST_PRIORITY) if priority else None,
        )
    except UnreadableError as error:
        return Malformed("sacctmgr show assoc", line, str(error))


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
    if not bar or not account:
        return Malformed("sacctmgr show account", line, "names no account")
    return account, tuple(name for name in names.split(",") if name)
