"""A cluster spoken to through Slurm's own commands."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm import text_config
from shapleyprio.slurm.commands import SlurmCommands, cause, daemon_away, failure, no_answer
from shapleyprio.slurm.port import (
    Connection,
    Controller,
    Layout,
    Malformed,
    PendingQueue,
    SlurmRefusedError,
    SlurmUnavailableError,
)
from shapleyprio.slurm.text import new_delimiter
from shapleyprio.slurm.text_accounting import FIELDS, accounting_line
from shapleyprio.slurm.text_queue import (
    NOBODY_WAITS,
    SITE_FACTOR_FORMAT,
    is_target,
    refusals,
    site_factor_line,
    with_site_factors,
)
from shapleyprio.slurm.text_squeue import ARRAY_FIELDS, TASK_FIELDS, WaitingRecords, format_of

Found = TypeVar("Found")

EARLIEST_TIME = 1_000_000  # Slurm takes smaller numbers for mistakes
MOST_TARGET_CHARACTERS = 100_000  # Linux takes 128 KiB in one argument
SACCT = ("-n", "-p", "-D", "-X", "-a", "--noconvert", "-o", ",".join(FIELDS))
SQUEUE = ("-h", "-a", "--local", "--noconvert", "-t", "PD")
SPRIO = ("-h", "--local", "-o", SITE_FACTOR_FORMAT)
ASSOCIATIONS = ("-nP", "show", "assoc", "format=Account,ParentName,User")
QOS = ("-nP", "show", "qos", "format=Name,Priority")
DENIALS = ("Access/permission denied", "Invalid user id")
LEVELS = ("None", "Operator", "Administrator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a channel writes, in the words of Slurm's commands.

    Attributes:
        entity: what carries it.
        name: its name to ``scontrol update`` or ``sacctmgr modify``.
        smallest, largest: the values that Slurm takes.
        admin_level: that a user needs to write it.
    """

    entity: Literal["job", "qos"]
    name: str
    smallest: int
    largest: int
    admin_level: str


_LARGEST_SUMMAND = 2**31 - 3
SETTINGS: Mapping[str, Setting] = {
    "site_factor": Setting(
        entity="job",
        name="SiteFactor",
        smallest=-_LARGEST_SUMMAND,
        largest=_LARGEST_SUMMAND,
        admin_level="Operator",
    ),
    "nice": Setting(
        entity="job",
        name="Nice",
        smallest=-_LARGEST_SUMMAND,
        largest=_LARGEST_SUMMAND,
        admin_level="Operator",
    ),
    "qos": Setting(
        entity="qos", name="Priority", smallest=0, largest=2**31 - 1, admin_level="Administrator"
    ),
}
"""Channel -> what it writes."""


class CommandLineSlurm:
    """The port `Slurm`, through sacct, squeue, sprio, sdiag, scontrol and sacctmgr.

    Args:
        connection: settings; the environment is that of the commands.
    """

    def __init__(self, connection: Connection) -> None:
        cluster = connection.cluster
        self._weight = "cpu" if connection.weight == "cpus" else connection.weight
        self._batch_size = connection.batch_size
        self._sacct = (*SACCT, f"--clusters={cluster}") if cluster else (*SACCT, "--local")
        self._cluster = cluster
        self._commands = SlurmCommands(
            timeout_seconds=connection.timeout_seconds,
            bin_directory=connection.bin_directory,
            environment=connection.environment,
        )

    # -- reading

    def controller(self) -> Controller:
        """Asks the controller for its state."""
        self._ping()
        return _readable(text_config.controller(self._commands.read("sdiag")))

    def cluster(self) -> str:
        """Reads ClusterName."""
        return self._cluster or self._configuration().get("ClusterName", "")

    def layout(self) -> Layout:
        """Reads nodes, partitions, accounts, QOS and priority settings."""
        config = self._configuration()
        cluster = self._cluster or config.get("ClusterName", "")
        nodes = self._shown(text_config.node_line, "scontrol", "show", "node", "-a", "-o")
        partitions = self._shown(
            text_config.partition_line, "scontrol", "show", "partition", "-a", "-o"
        )
        accounts = self._shown(
            text_config.association_line, "sacctmgr", *ASSOCIATIONS, f"cluster={cluster}"
        )
        return Layout(
            cluster=cluster,
            version=config.get("SLURM_VERSION", ""),
            nodes={node.name: node for node in nodes},
            partitions={partition.name: partition for partition in partitions},
            accounts=_one_parent_each(pair for pair in accounts if pair is not None),
            qos_priorities=self.qos_priorities(),
            enforces_accounts=text_config.enforces_accounts(config),
            settings=_readable(text_config.priority_settings(config)),
        )

    def qos_priorities(self) -> Mapping[str, int]:
        """Reads QOS -> priority."""
        return dict(self._shown(text_config.qos_line, "sacctmgr", *QOS))

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        """Yields accounting records of jobs that existed at some time in [since, until]."""
        return self._accounted("-S", _time(since), "-E", _time(until + 1))

    def records_of(self, job_ids: Sequence[int]) -> Iterator[JobRecord | Malformed]:
        """Yields all accounting records of the jobs with these ids; unknown ids are passed over."""
        for batch in _batches(sorted(set(job_ids)), self._batch_size):
            wanted = set(batch)
            for record in self._accounted("-j", ",".join(map(str, batch))):
                # an array's own number brings all its tasks
                if isinstance(record, Malformed) or record.job_id in wanted:
                    yield record

    def pending(self) -> PendingQueue:
        """Reads the jobs that wait."""
        self._ping()
        delimiter = new_delimiter()
        records = WaitingRecords(self._waiting("--array", TASK_FIELDS, delimiter), delimiter)
        if records.may_lack_tasks():
            delimiter = new_delimiter()
            records.complete(self._waiting(None, ARRAY_FIELDS, delimiter), delimiter)
        factors: dict[int, int] = {}
        malformed: list[Malformed] = []
        for line in self._commands.lines("sprio", *SPRIO):
            if not line or line.startswith(NOBODY_WAITS):
                continue
            found = site_factor_line(line)
            if isinstance(found, Malformed):
                malformed.append(found)
            else:
                factors[found[0]] = found[1]
        queue = records.queue()
        jobs = with_site_factors(queue.jobs, factors)
        return PendingQueue(jobs, [*queue.malformed, *malformed])

    # -- writing

    def write(self, channel: str, values: Mapping[str, int]) -> Mapping[str, str]:
        """Writes priorities and returns what Slurm would not change, with the reasons.

        Some refusals ("Requested partition configuration not available now") come although the
        nice was changed: read the values back to know.
        """
        if not values:
            return {}
        setting = SETTINGS[channel]
        low, high = setting.smallest, setting.largest
        refused = {
            target: f"{value} is not between {low} and {high}"
            for target, value in values.items()
            if not low <= value <= high
        }
        rest = {target: value for target, value in values.items() if target not in refused}
        if setting.entity == "qos":
            return refused | self._write_qos(setting, rest)
        return refused | self._write_jobs(channel, rest)

    def _write_jobs(self, channel: str, values: Mapping[str, int]) -> dict[str, str]:
        self._ping()
        name = SETTINGS[channel].name
        refused = {target: "names no job" for target in values if not is_target(target)}
        refused |= {
            target: "names more tasks than one command takes"
            for target in values
            if len(target) > MOST_TARGET_CHARACTERS
        }
        by_value: dict[int, list[str]] = {}
        for target, value in values.items():
            if target not in refused:
                by_value.setdefault(value, []).append(target)
        for value, targets in by_value.items():
            for batch in _batches(targets, self._batch_size, MOST_TARGET_CHARACTERS):
                refused |= self._update(f"{name}={value}", batch)
        if values and all(refused.get(target, "").startswith(DENIALS) for target in values):
            why = next(iter(refused.values()))
            raise SlurmRefusedError(
                f"Slurm lets us change no job's {name} ({why}):"
                f" {self.privilege(channel) or 'see the log of slurmctld'}"
            )
        return refused

    def _update(self, setting: str, targets: Sequence[str]) -> dict[str, str]:
        answer = self._commands.run("scontrol", "update", f"JobId={','.join(targets)}", setting)
        if answer.code == 0:
            return {}
        if daemon_away("scontrol", answer.complaints) is not None:
            raise failure("scontrol", answer.complaints, answer.code)
        refused = refusals(answer.complaints, targets)
        if refused or "No error" in answer.complaints:
            return refused
        return dict.fromkeys(targets, cause(answer.said, answer.code))

    def _write_qos(self, setting: Setting, values: Mapping[str, int]) -> dict[str, str]:
        refused: dict[str, str] = {}
        for name, value in values.items():
            answer = self._commands.run(
                "sacctmgr", "-i", "modify", "qos", "where", f"name={name}", "set",
                f"{setting.name}={value}",
            )  # fmt: skip
            if answer.code != 0:
                if "Nothing modified" not in answer.output + answer.complaints:
                    raise failure("sacctmgr", answer.said, answer.code)
                refused[name] = cause(answer.said, answer.code)
        if refused:
            present = self.qos_priorities()
            refused = {
                name: why if name in present else "no such QOS"
                for name, why in refused.items()
                if present.get(name) != values[name]
            }
        return refused

    def privilege(self, channel: str) -> str | None:
        """Returns None if we may write to the channel, else what is missing and how to get it."""
        number = os.geteuid()
        slurm_user = text_config.user_number(self._configuration().get("SlurmUser", ""))
        if number in {0, slurm_user}:
            return None
        name = _user_name(number)
        shown = self._commands.read("sacctmgr", "-nP", "show", "user", name, "format=AdminLevel")
        level = shown.strip() or "None"
        needed = SETTINGS[channel].admin_level
        if level in LEVELS and LEVELS.index(level) >= LEVELS.index(needed):
            return None
        verb = f"modify user {name} set" if shown.strip() else f"add user {name} account=root"
        return (
            f"{name} has AdminLevel {level} and needs {needed}: sacctmgr {verb} AdminLevel={needed}"
        )

    # -- helpers

    def _ping(self) -> None:
        """Finds out in milliseconds what every other command takes 9 seconds to notice."""
        answer = self._commands.run("scontrol", "ping")
        if not text_config.is_up(answer.output):
            if daemon_away("scontrol", answer.complaints) is not None:
                raise failure("scontrol", answer.complaints, answer.code)
            reason = answer.output.strip().split("\n")[0][:200] or cause(answer.said, answer.code)
            raise no_answer("slurmctld", f"scontrol ping: {reason}")

    def _configuration(self) -> dict[str, str]:
        self._ping()
        return text_config.configuration(self._commands.read("scontrol", "show", "config"))

    def _waiting(self, option: str | None, fields: Iterable[str], delimiter: str) -> Iterator[str]:
        options = (*SQUEUE, option) if option else SQUEUE
        return self._commands.lines("squeue", *options, "-o", format_of(fields, delimiter))

    def _shown(self, parse: Callable[[str], Found | Malformed], *command: str) -> list[Found]:
        lines = self._commands.read(*command).split("\n")
        return [_readable(parse(line)) for line in lines if line.strip()]

    def _accounted(self, *which: str) -> Iterator[JobRecord | Malformed]:
        delimiter = new_delimiter()
        options = (*self._sacct, f"--delimiter={delimiter}")
        for line in self._commands.lines("sacct", *options, *which):
            yield accounting_line(line, self._weight, delimiter)


def _readable(found: Found | Malformed) -> Found:
    if isinstance(found, Malformed):
        raise SlurmUnavailableError(
            f"{found.source} printed what cannot be read ({found.reason}): {found.text[:200]!r}"
        )
    return found


def _batches(
    items: Iterable[Found], size: int, characters: int = MOST_TARGET_CHARACTERS
) -> Iterator[list[Found]]:
    """Cuts items into lists of at most so many, and so many characters when joined by commas."""
    batch: list[Found] = []
    length = 0
    for item in items:
        width = len(str(item)) + 1
        if batch and (len(batch) == size or length + width > characters):
            yield batch
            batch, length = [], 0
        batch.append(item)
        length += width
    if batch:
        yield batch


def _time(second: int) -> str:
    return f"uts{max(second, EARLIEST_TIME)}"


def _one_parent_each(pairs: Iterable[tuple[str, str | None]]) -> dict[str, str | None]:
    """Returns account -> parent; an account has one line unless another's name has a line end."""
    parents: dict[str, str | None] = {}
    for account, parent in pairs:
        if account in parents:
            raise SlurmUnavailableError(
                f"sacctmgr show assoc lists account {account!r} more than once: look for an account"
                " with a line end in its name"
            )
        parents[account] = parent
    return parents


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
