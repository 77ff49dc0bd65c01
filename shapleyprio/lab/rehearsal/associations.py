"""Reads the tree of accounts, shares and limits that ``sacctmgr dump`` has written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from shapleyprio.lab.rehearsal.errors import SiteError, text_of
from shapleyprio.lab.rehearsal.slurm_conf import NAME, PLAIN_VALUE
from shapleyprio.slurm.associations import ROOT

PARENT_SHARE = "2147483647"
"""What stands there for ``Fairshare=parent``."""

_LINE = re.compile(r"(Cluster|Parent|Account|User) - '([^']*)'((?::.*)?)")
_OPTION = re.compile(r":([A-Z][A-Za-z]*)=('[^']*'|(?:[^':]|:(?![A-Z][A-Za-z]*=))*)")
_IN_PARTITION = re.compile(r":Partition='?[^':]")
_TAKEN = frozenset(
    {
        *("Fairshare", "FairShare", "Priority", "GrpTRES", "GrpTRESRunMins", "GrpJobs"),
        *("GrpJobsAccrue", "MaxJobs", "MaxJobsAccrue", "MinPrioThresh"),
    }
)
_USAGE = frozenset({"GrpTRESMins", "GrpWall"})

Options = Mapping[str, str]
NONE: Options = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SiteAssociations:
    """The accounts of the site.

    Attributes:
        parents: account -> the one above it, None below the root; those above come first.
        accounts: account -> its shares and limits.
        users: account and user -> likewise.
        left_out: key -> what might differ since it is left out.
    """

    parents: Mapping[str, str | None] = field(default_factory=dict)
    accounts: Mapping[str, Options] = field(default_factory=dict)
    users: Mapping[tuple[str, str], Options] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def read_associations(file: Path) -> SiteAssociations:
    """Reads a dump.

    Raises:
        SiteError: it is none.
    """
    reader = _Reader()
    for number, line in enumerate(text_of(file).splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            reader.add(f"{file}:{number}", text)
    if not reader.parents:
        raise SiteError(f"{file}: has no account; `sacctmgr dump CLUSTER file=FILE` writes it")
    return SiteAssociations(reader.parents, reader.accounts, reader.users, reader.left)


class _Reader:
    """Gathers what lines say."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self.accounts: dict[str, Options] = {}
        self.users: dict[tuple[str, str], Options] = {}
        self.left: dict[str, str] = {}
        self._above = ROOT

    def add(self, where: str, text: str) -> None:
        found = _LINE.fullmatch(text)
        if found is None:
            raise SiteError(f"{where}: {text[:80]!r} is not a line of `sacctmgr dump CLUSTER`")
        kind, name = found[1], found[2]
        if kind == "User" and _IN_PARTITION.search(found[3]):
            self.left["Partition of users"] = "shares and limits in one partition do not count"
            return
        options = _options(where, found[3], self.left)
        if kind == "Parent":
            if name not in {ROOT, *self.parents}:
                raise SiteError(f"{where}: Parent: account {name[:80]!r} has no line above")
            self._above = name
        elif kind == "Account":
            self._add_account(where, name, options)
        elif kind == "User":
            self.users[self._above, name] = options

    def _add_account(self, where: str, name: str, options: Options) -> None:
        if not NAME.fullmatch(name):
            raise SiteError(f"{where}: Account: {name[:80]!r} is not an account name")
        if name in self.parents:
            raise SiteError(f"{where}: Account: {name} already has a line above")
        self.parents[name] = None if self._above == ROOT else self._above
        self.accounts[name] = options


def _options(where: str, text: str, left: dict[str, str]) -> Options:
    options = {}
    place = 0
    while place < len(text):
        option = _OPTION.match(text, place)
        if option is None:
            raise SiteError(f"{where}: {text[place : place + 80]!r} is not :KEY=VALUE")
        place = option.end()
        key, value = option[1], option[2]
        if key in _USAGE:
            left[f"{key} of accounts"] = "work before the rehearsal does not count"
        if key not in _TAKEN:
            continue
        if not PLAIN_VALUE.fullmatch(value):
            raise SiteError(f"{where}: {key}: {value[:80]!r} is not a Slurm limit")
        if value:
            options[key] = "parent" if value == PARENT_SHARE else value
    return options
