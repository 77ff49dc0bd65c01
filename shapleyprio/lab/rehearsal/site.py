"""What is known of a site's Slurm from all its files: slurm.conf, its accounts and its QOS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from shapleyprio.lab.rehearsal.site_files import SiteError, text_of
from shapleyprio.lab.rehearsal.slurm_conf import NAME, PLAIN_VALUE, SiteConf, read_slurm_conf
from shapleyprio.lab.rehearsal.taken_over import preempt_modes, scheduler_parameters
from shapleyprio.slurm.layout import ROOT

PARENT_SHARE = "2147483647"
"""What stands there for ``Fairshare=parent``."""

_DUMP_LINE = re.compile(r"(Cluster|Parent|Account|User) - '([^']*)'((?::.*)?)")
_DUMP_OPTION = re.compile(r":([A-Z][A-Za-z]*)=('[^']*'|(?:[^':]|:(?![A-Z][A-Za-z]*=))*)")
_IN_PARTITION = re.compile(r":Partition='?[^':]")
_TAKEN_OF_ACCOUNTS = frozenset(
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
    reader = _DumpReader()
    for number, line in enumerate(text_of(file).splitlines(), start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            reader.add(f"{file}:{number}", text)
    if not reader.parents:
        raise SiteError(f"{file}: has no account; `sacctmgr dump CLUSTER file=FILE` writes it")
    return SiteAssociations(reader.parents, reader.accounts, reader.users, reader.left)


class _DumpReader:
    """Gathers what lines say."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self.accounts: dict[str, Options] = {}
        self.users: dict[tuple[str, str], Options] = {}
        self.left: dict[str, str] = {}
        self._above = ROOT

    def add(self, where: str, text: str) -> None:
        found = _DUMP_LINE.fullmatch(text)
        if found is None:
            raise SiteError(f"{where}: {text[:80]!r} is not a line of `sacctmgr dump CLUSTER`")
        kind, name = found[1], found[2]
        if kind == "User" and _IN_PARTITION.search(found[3]):
            self.left["Partition of users"] = "shares and limits in one partition do not count"
            return
        options = _options_of_account(where, found[3], self.left)
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


def _options_of_account(where: str, text: str, left: dict[str, str]) -> Options:
    options = {}
    place = 0
    while place < len(text):
        option = _DUMP_OPTION.match(text, place)
        if option is None:
            raise SiteError(f"{where}: {text[place : place + 80]!r} is not :KEY=VALUE")
        place = option.end()
        key, value = option[1], option[2]
        if key in _USAGE:
            left[f"{key} of accounts"] = "work before the rehearsal does not count"
        if key not in _TAKEN_OF_ACCOUNTS:
            continue
        if not PLAIN_VALUE.fullmatch(value):
            raise SiteError(f"{where}: {key}: {value[:80]!r} is not a Slurm limit")
        if value:
            options[key] = "parent" if value == PARENT_SHARE else value
    return options


ASK_QOS = "sacctmgr -P show qos"

_TAKEN_OF_QOS = MappingProxyType(
    {
        **{key: key for key in ("Priority", "GraceTime", "PreemptExemptTime", "UsageFactor")},
        **{key: key for key in ("GrpTRES", "GrpTRESRunMins", "GrpJobs", "LimitFactor")},
        "UsageThres": "UsageThreshold",
        "MaxTRESPU": "MaxTRESPerAccount",
        "MaxJobsPU": "MaxJobsPerAccount",
    }
)
"""Column -> option of sacctmgr. Each user of an account has an account here, so that the limits of
a user are those of an account."""

_QOS_FLAGS = frozenset({"NoReserve", "OverPartQOS", "EnforceUsageThreshold", "UsageFactorSafe"})
"""The others refuse jobs that accounting has."""

_QOS_EFFECTS = MappingProxyType(
    {
        "GrpTRESMins": "work before the rehearsal does not count",
        "GrpWall": "work before the rehearsal does not count",
        "MaxTRESPA": "the limit holds for users, not for accounts",
        "MaxJobsPA": "the limit holds for users, not for accounts",
    }
)


@dataclass(frozen=True, slots=True)
class SiteQos:
    """The QOS of the site.

    Attributes:
        options: name -> options of sacctmgr.
        preempted: name -> those whose jobs its own preempt.
        left_out: key -> what might differ since it is left out.
    """

    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    preempted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def read_qos(file: Path) -> SiteQos:
    """Reads QOS.

    Raises:
        SiteError: it is not what that command prints.
    """
    lines = text_of(file).splitlines()
    columns = lines[0].split("|") if lines else []
    if "Name" not in columns or "Priority" not in columns:
        raise SiteError(f"{file}:1: does not name columns as `{ASK_QOS}` does; print it so")
    options: dict[str, Mapping[str, str]] = {}
    preempted: dict[str, tuple[str, ...]] = {}
    left: dict[str, str] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        cells, where = line.split("|"), f"{file}:{number}"
        if len(cells) != len(columns):
            raise SiteError(f"{where}: {len(cells)} fields instead of {len(columns)}")
        row = dict(zip(columns, cells, strict=True))
        name = row["Name"]
        _check_qos(where, row)
        if name in options:
            raise SiteError(f"{where}: Name: {name} already has a line above")
        options[name] = _options_of_qos(row)
        preempted[name] = tuple(filter(None, row.get("Preempt", "").split(",")))
        left.update({f"{c} of QOS": why for c, why in _QOS_EFFECTS.items() if row.get(c)})
    for name, others in preempted.items():
        for other in others:
            if other not in options:
                raise SiteError(f"{file}: Preempt: {name} names {other[:80]!r}, which has no line")
    return SiteQos(options, preempted, left)


def _check_qos(where: str, row: Mapping[str, str]) -> None:
    if not NAME.fullmatch(row["Name"]):
        raise SiteError(f"{where}: Name: {row['Name'][:80]!r} is not a QOS name")
    for column in (*_TAKEN_OF_QOS, "Preempt", "PreemptMode", "Flags"):
        if not PLAIN_VALUE.fullmatch(row.get(column, "")):
            raise SiteError(
                f"{where}: {column}: {row[column][:80]!r} is not a value that Slurm prints"
            )


def _options_of_qos(row: Mapping[str, str]) -> dict[str, str]:
    options = {
        option: value for column, option in _TAKEN_OF_QOS.items() if (value := row.get(column, ""))
    }
    if (mode := row.get("PreemptMode", "")) and mode != "cluster":
        options["PreemptMode"] = preempt_modes(mode)[0]
    if flags := [flag for flag in row.get("Flags", "").split(",") if flag in _QOS_FLAGS]:
        options["Flags"] = ",".join(flags)
    return options


NO_SHARES = "without `sacctmgr dump` all accounts have one share and no limits"
NO_QOS = "without `sacctmgr show qos` all QOS have priority 0 and no limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSlurm:
    """A site's configuration, as far as it is taken over.

    Attributes:
        conf: of slurm.conf.
        associations: accounts, shares and limits.
        qos: the QOS.
    """

    conf: SiteConf
    associations: SiteAssociations
    qos: SiteQos

    @property
    def left_out(self) -> Mapping[str, str]:
        """What is left out -> what might differ because of it."""
        parameters = self.conf.settings.get("SchedulerParameters", "")
        _, keys = scheduler_parameters(parameters, speed=1)
        return {
            **self.conf.left_out,
            **{f"SchedulerParameters={key}": effect for key, effect in keys},
            **self.associations.left_out,
            **self.qos.left_out,
            **({} if self.associations.parents else {"associations": NO_SHARES}),
            **({} if self.qos.options else {"QOS": NO_QOS}),
        }


def read_site(slurm_conf: Path, associations: Path | None, qos: Path | None) -> SiteSlurm:
    """Reads the files of a site.

    Args:
        slurm_conf: the file of that name.
        associations: what ``sacctmgr dump`` wrote; None to do without.
        qos: what ``sacctmgr -P show qos`` printed; None likewise.

    Raises:
        SiteError: a file cannot be read; the message says where, and why.
    """
    return SiteSlurm(
        conf=read_slurm_conf(slurm_conf),
        associations=SiteAssociations()
        if associations is None
        else read_associations(associations),
        qos=SiteQos() if qos is None else read_qos(qos),
    )
