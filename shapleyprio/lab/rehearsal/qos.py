"""Reads the QOS that ``sacctmgr --parsable2 show qos`` has printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from shapleyprio.lab.rehearsal.errors import SiteError, text_of
from shapleyprio.lab.rehearsal.slurm_conf import NAME, PLAIN_VALUE
from shapleyprio.lab.rehearsal.taken_over import preempt_modes

ASK_QOS = "sacctmgr -P show qos"

_TAKEN = MappingProxyType(
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

_FLAGS = frozenset({"NoReserve", "OverPartQOS", "EnforceUsageThreshold", "UsageFactorSafe"})
"""The others refuse jobs that accounting has."""

_EFFECTS = MappingProxyType(
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
        _check(where, row)
        if name in options:
            raise SiteError(f"{where}: Name: {name} already has a line above")
        options[name] = _options(row)
        preempted[name] = tuple(filter(None, row.get("Preempt", "").split(",")))
        left.update({f"{c} of QOS": why for c, why in _EFFECTS.items() if row.get(c)})
    for name, others in preempted.items():
        for other in others:
            if other not in options:
                raise SiteError(f"{file}: Preempt: {name} names {other[:80]!r}, which has no line")
    return SiteQos(options, preempted, left)


def _check(where: str, row: Mapping[str, str]) -> None:
    if not NAME.fullmatch(row["Name"]):
        raise SiteError(f"{where}: Name: {row['Name'][:80]!r} is not a QOS name")
    for column in (*_TAKEN, "Preempt", "PreemptMode", "Flags"):
        if not PLAIN_VALUE.fullmatch(row.get(column, "")):
            raise SiteError(
                f"{where}: {column}: {row[column][:80]!r} is not a value that Slurm prints"
            )


def _options(row: Mapping[str, str]) -> dict[str, str]:
    options = {option: value for column, option in _TAKEN.items() if (value := row.get(column, ""))}
    if (mode := row.get("PreemptMode", "")) and mode != "cluster":
        options["PreemptMode"] = preempt_modes(mode)[0]
    if flags := [flag for flag in row.get("Flags", "").split(",") if flag in _FLAGS]:
        options["Flags"] = ",".join(flags)
    return options
