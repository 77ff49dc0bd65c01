"""Reads sdiag, and what scontrol and sacctmgr show of the configuration and of associations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from shapleyprio.slurm.layout import (
    Association,
    Node,
    Partition,
    PrioritySettings,
    Reservation,
    SubmissionSettings,
)
from shapleyprio.slurm.port import Controller, Malformed
from shapleyprio.slurm.text.values import (
    LARGEST_ID,
    UnreadableError,
    amount,
    duration,
    hosts,
    tres,
    whole,
)

NULLS = frozenset({"", "(null)", "N/A", "none", "site_factor/none"})
LARGEST_PRIORITY = 2**32 - 1

_SDIAG = {
    "clock": re.compile(r"sdiag output at .*\(([0-9]{1,10})\)"),
    "DBD Agent queue size": re.compile(r"DBD Agent queue size: *([0-9]{1,15})"),
    "Jobs submitted": re.compile(r"Jobs submitted: *([0-9]{1,15})"),
}
_CHANGES = re.compile(r"REQUEST_(?:UPDATE|TOP)_JOB +\( *[0-9]+\) +count: *([0-9]{1,15})")
_WEIGHT = "PriorityWeight"

CLOSED = frozenset({
    *("DOWN", "ERROR", "FUTURE"),
    *("DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING"),
    *("MAINT", "MAINTENANCE", "INVALID_REG"),
})  # fmt: skip
"""Words in the state of a node on which Slurm starts nothing until the node is brought back."""

_STATE_WORD = re.compile(r"[A-Z_]+")  # DOWN*+DRAIN: signs stand behind words


def controller(text: str) -> Controller | Malformed:
    """Reads the output of sdiag; `changed` counts our own requests as well."""
    values = {}
    for name, pattern in _SDIAG.items():
        found = pattern.search(text)
        if found is None:
            return Malformed("sdiag", text[:400], f"{name}: missing")
        values[name] = int(found.group(1))
    return Controller(
        time=values["clock"],
        accounting_backlog=values["DBD Agent queue size"],
        submitted=values["Jobs submitted"],
        changed=sum(map(int, _CHANGES.findall(text))),
    )


def configuration(text: str) -> dict[str, str]:
    """Reads ``scontrol show config`` into key -> value; values that are not set are empty."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        key, equals, value = line.partition("=")
        if equals:
            value = value.strip()
            found.setdefault(key.strip(), "" if value == "(null)" else value)
    return found


def priority_settings(config: Mapping[str, str]) -> PrioritySettings | Malformed:
    """Reads the Priority settings of a `configuration`."""
    try:
        return PrioritySettings(
            type=config.get("PriorityType", ""),
            weights=_weights(config),
            flags=_names(config.get("PriorityFlags", "")),
            calc_period_seconds=_seconds(config, "PriorityCalcPeriod"),
            max_age_seconds=_seconds(config, "PriorityMaxAge"),
            site_factor_plugin=_set_or_empty(config.get("PrioritySiteFactorPlugin", "")),
            user_top="enable_user_top" in _names(config.get("SchedulerParameters", "")),
        )
    except UnreadableError as error:
        return Malformed("scontrol show config", "", str(error))


def kill_wait(config: Mapping[str, str]) -> int:
    """Returns KillWait in seconds, as a `configuration` has it; Slurm's own 30 s if it has none."""
    seconds = re.fullmatch(r"([0-9]{1,5}) sec", config.get("KillWait", ""))
    return int(seconds.group(1)) if seconds else 30


def enforces_accounts(config: Mapping[str, str]) -> bool:
    """Returns whether Slurm refuses jobs of accounts that their user does not belong to.

    It shows ``associations`` whenever that is in force, also where slurm.conf has it only by
    implication (limits, qos, safe, wckeys, all).
    """
    return "associations" in _names(config.get("AccountingStorageEnforce", ""))


def daemon_hosts(config: Mapping[str, str]) -> tuple[str, ...]:
    """Returns where slurmctld and slurmdbd run, by address where a `configuration` has one."""
    controllers, others = [], []
    for key, value in config.items():
        if key.partition("[")[0] == "SlurmctldHost" and value:
            name, _, address = value.removesuffix(")").partition("(")
            controllers.append(address or name)
        elif key in {"AccountingStorageHost", "AccountingStorageBackupHost"} and value:
            others.append(value)
    return (*controllers, *others)


def submission_settings(config: Mapping[str, str]) -> SubmissionSettings:
    """Reads what a `configuration` says of new jobs, and where slurmctld runs."""
    hosts = [value for key, value in config.items() if key.partition("[")[0] == "SlurmctldHost"]
    return SubmissionSettings(
        plugins=frozenset(
            name.removeprefix("job_submit/") for name in _names(config.get("JobSubmitPlugins", ""))
        ),
        controller_hosts=tuple(host.partition("(")[0] for host in hosts if host),
        slurm_user=user_number(config.get("SlurmUser", "")),
    )


def node_line(line: str) -> Node | Malformed:
    """Reads one line of ``scontrol show node -o``."""
    try:
        name = _value(line, "NodeName")
        resources = tres("CfgTRES", _value(line, "CfgTRES", ""))
        if "cpu" not in resources:
            resources["cpu"] = whole("CPUTot", _value(line, "CPUTot"))
        allocated = tres("AllocTRES", _value(line, "AllocTRES", ""))
        if "billing" in resources and "billing" not in allocated:  # Slurm shows none: as its CPUs
            cpus = allocated.get("cpu", 0)
            allocated["billing"] = resources["billing"] * cpus // max(resources["cpu"], 1)
        words = set(_STATE_WORD.findall(_value(line, "State", "")))
        return Node(
            name=name, tres=resources, closed=not words.isdisjoint(CLOSED), allocated=allocated
        )
    except UnreadableError as error:
        return Malformed("scontrol show node", line, str(error))


def partitions_of_node(line: str) -> tuple[str, ...]:
    """Returns the partitions in one line of ``scontrol show node -o``."""
    return tuple(filter(None, _set_or_empty(_value(line, "Partitions", "")).split(",")))


def reservation_line(line: str) -> Reservation | Malformed:
    """Reads one line of ``scontrol show reservation -o``."""
    try:
        nodes = "" if " CoreIDs=" in line else _set_or_empty(_value(line, "Nodes", ""))
        return Reservation(
            name=_value(line, "ReservationName"),
            begin=whole("StartTime", _value(line, "StartTime")),
            end=whole("EndTime", _value(line, "EndTime")),
            nodes=hosts("Nodes", nodes) if nodes else (),
        )
    except UnreadableError as error:
        return Malformed("scontrol show reservation", line, str(error))


def partition_line(line: str) -> Partition | Malformed:
    """Reads one line of ``scontrol show partition -o``."""
    try:
        nodes = _set_or_empty(_value(line, "Nodes", ""))
        accounts = _value(line, "AllowAccounts", "ALL")
        longest = _value(line, "MaxTime", "UNLIMITED")
        return Partition(
            name=_value(line, "PartitionName"),
            nodes=hosts("Nodes", nodes) if nodes else (),
            allow_accounts=() if accounts in {"ALL", *NULLS} else tuple(accounts.split(",")),
            priority_job_factor=whole(
                "PriorityJobFactor", _value(line, "PriorityJobFactor", "1"), 0, LARGEST_PRIORITY
            ),
            longest=None if longest == "UNLIMITED" else duration("MaxTime", longest),
            preempts=_value(line, "PreemptMode", "OFF").split(",") != ["OFF"],
        )
    except UnreadableError as error:
        return Malformed("scontrol show partition", line, str(error))


def qos_line(line: str) -> tuple[str, int] | Malformed:
    """Reads ``Name|Priority`` of ``sacctmgr -nP show qos``."""
    name, _, priority = line.rpartition("|")
    if not name:
        return Malformed("sacctmgr show qos", line, "Name: empty")
    try:
        return name, whole("Priority", priority or "0", 0, LARGEST_PRIORITY)
    except UnreadableError as error:
        return Malformed("sacctmgr show qos", line, str(error))


def is_up(text: str) -> bool:
    """Returns whether ``scontrol ping`` found a controller, be it the backup."""
    return re.search(r"\bis UP\b", text) is not None


def user_number(text: str) -> int | None:
    """Reads the number in a setting such as ``slurm(64030)``."""
    match = re.fullmatch(r".*\(([0-9]{1,10})\)", text)
    return int(match.group(1)) if match else None


def _weights(config: Mapping[str, str]) -> dict[str, int]:
    weights: dict[str, int] = {}
    for key, value in config.items():
        if key == f"{_WEIGHT}TRES":
            for item in value.split(",") if value else ():
                name, _, weight = item.partition("=")
                weights[f"TRES:{name}"] = amount(key, weight)
        elif key.startswith(_WEIGHT):
            weights[key.removeprefix(_WEIGHT)] = whole(key, value, 0, LARGEST_PRIORITY)
    return weights


def _seconds(config: Mapping[str, str], key: str) -> int:
    text = config.get(key, "")
    return duration(key, text) if text else 0


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _set_or_empty(text: str) -> str:
    return "" if text in NULLS else text


def _value(line: str, key: str, missing: str | None = None) -> str:
    """Returns the first KEY=VALUE of a line: an admin's reason or comment comes last."""
    _, found, rest = f" {line}".partition(f" {key}=")
    if found:
        return rest.partition(" ")[0]
    if missing is None:
        raise UnreadableError(f"{key}: missing")
    return missing


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
