"""A cluster spoken to through Slurm's own commands."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm import text_config
from shapleyprio.slurm.commands import Answer, Commands, daemon_away, failure, no_answer
from shapleyprio.slurm.port import (
    Channel,
    Controller,
    Layout,
    Malformed,
    PendingJob,
    SlurmRefusedError,
    SlurmUnavailableError,
)
from shapleyprio.slurm.text import SEPARATOR
from shapleyprio.slurm.text_accounting import FIELDS, accounting_line
from shapleyprio.slurm.text_queue import (
    NOBODY_WAITS,
    PENDING_FORMAT,
    SITE_FACTOR_FORMAT,
    is_target,
    pending_line,
    refusals,
    site_factor_line,
    with_site_factors,
)

Found = TypeVar("Found")

EARLIEST_TIME = 1_000_000  # Slurm takes smaller numbers for mistakes
MOST_TARGET_CHARACTERS = 100_000  # Linux takes 128 KiB in one argument
SACCT = (
    *("-n", "-P", "-D", "-X", "-a", "--noconvert", f"--delimiter={SEPARATOR}"),
    *("-o", ",".join(FIELDS)),
)
SETTINGS = {Channel.SITE_FACTOR: "SiteFactor", Channel.NICE: "Nice"}
SMALLEST_AND_LARGEST = {
    Channel.SITE_FACTOR: (-2147483645, 2147483645),
    Channel.NICE: (-2147483645, 2147483645),
    Channel.QOS: (0, 2147483647),
}
DENIALS = ("Access/permission denied", "Invalid user id")
LEVELS = ("None", "Operator", "Administrator")


class CommandLineSlurm:
    """The port `Slurm`, through sacct, squeue, sprio, sdiag, scontrol and sacctmgr.

    Args:
        weight: what counts as a processor: ``cpus``, ``billing`` or a TRES such as ``gres/gpu``.
        timeout_seconds: how long one command may keep us waiting.
        batch_size: how many jobs to change with one command.
        bin_directory: where the commands are; None for the PATH.
        environment: variables for the commands, beside our own.
        cluster: name of the cluster in accounting; None for the one slurm.conf names.
    """

    def __init__(
        self,
        *,
        weight: str = "cpus",
        timeout_seconds: float = 60,
        batch_size: int = 500,
        bin_directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
        cluster: str | None = None,
    ) -> None:
        self._weight = "cpu" if weight == "cpus" else weight
        self._batch_size = batch_size
        self._sacct = (*SACCT, f"--clusters={cluster}") if cluster else (*SACCT, "--local")
        self._cluster = cluster
        self._commands = Commands(
            timeout_seconds=timeout_seconds, bin_directory=bin_directory, environment=environment
        )

    # -- reading

    def controller(self) -> Controller:
        """Asks the controller how it is."""
        self._ping()
        return _readable(text_config.controller(self._commands.read("sdiag")))

    def cluster(self) -> str:
        """ClusterName."""
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
            text_config.association_line,
            *("sacctmgr", "-nP", "show", "assoc", f"cluster={cluster}"),
            "format=Account,ParentName,User",
        )
        return Layout(
            cluster=cluster,
            nodes={node.name: node for node in nodes},
            partitions={partition.name: partition for partition in partitions},
            accounts=dict(pair for pair in accounts if pair is not None),
            qos_priorities=self.qos_priorities(),
            settings=_readable(text_config.priority_settings(config)),
        )

    def qos_priorities(self) -> Mapping[str, int]:
        """QOS -> priority."""
        return dict(
            self._shown(
                text_config.qos_line, "sacctmgr", "-nP", "show", "qos", "format=Name,Priority"
            )
        )

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        """Accounting records of jobs that existed at some time in [since, until]."""
        return self._accounted("-S", _time(since), "-E", _time(until + 1))

    def records_of(self, job_ids: Sequence[int]) -> Iterator[JobRecord | Malformed]:
        """All accounting records of the jobs with these ids; unknown ids are passed over."""
        for batch in _batches(sorted(set(job_ids)), self._batch_size):
            wanted = set(batch)
            for record in self._accounted("-j", ",".join(map(str, batch))):
                # an array's own number brings all its tasks
                if isinstance(record, Malformed) or record.job_id in wanted:
                    yield record

    def pending(self) -> list[PendingJob | Malformed]:
        """The jobs that wait."""
        self._ping()
        jobs = [
            pending_line(line)
            for line in self._commands.lines(
                "squeue", "-h", "-a", "--array-unique", "--local", "--noconvert", "-t", "PD", "-o",
                PENDING_FORMAT,
            )
            if line
        ]  # fmt: skip
        factors: dict[int, int] = {}
        unread: list[PendingJob | Malformed] = []
        for line in self._commands.lines("sprio", "-h", "--local", "-o", SITE_FACTOR_FORMAT):
            if not line or line.startswith(NOBODY_WAITS):
                continue
            found = site_factor_line(line)
            if isinstance(found, Malformed):
                unread.append(found)
            else:
                factors[found[0]] = found[1]
        return with_site_factors(jobs, factors) + unread

    # -- writing

    def write(self, channel: Channel, values: Mapping[str, int]) -> Mapping[str, str]:
        """Writes priorities and returns what Slurm would not change, with the reasons.

        Some refusals ("Requested partition configuration not available now") come although the
        nice was changed: reading back tells.
        """
        if not values:
            return {}
        low, high = SMALLEST_AND_LARGEST[channel]
        refused = {
            target: f"{value} is not between {low} and {high}"
            for target, value in values.items()
            if not low <= value <= high
        }
        rest = {target: value for target, value in values.items() if target not in refused}
        write = self._write_qos if channel is Channel.QOS else self._write_jobs
        return refused | write(channel, rest)

    def _write_jobs(self, channel: Channel, values: Mapping[str, int]) -> dict[str, str]:
        self._ping()
        refused = {target: "names no job" for target in values if not is_target(target)}
        by_value: dict[int, list[str]] = {}
        for target, value in values.items():
            if target not in refused:
                by_value.setdefault(value, []).append(target)
        for value, targets in by_value.items():
            for batch in _batches(targets, self._batch_size, MOST_TARGET_CHARACTERS):
                refused |= self._update(f"{SETTINGS[channel]}={value}", batch)
        if values and all(refused.get(target, "").startswith(DENIALS) for target in values):
            why = next(iter(refused.values()))
            raise SlurmRefusedError(
                f"Slurm lets us change no job's {SETTINGS[channel]} ({why}):"
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
        return dict.fromkeys(targets, _last_line(answer))

    def _write_qos(self, channel: Channel, values: Mapping[str, int]) -> dict[str, str]:
        assert channel is Channel.QOS
        refused: dict[str, str] = {}
        for name, value in values.items():
            answer = self._commands.run(
                "sacctmgr", "-i", "modify", "qos", "where", f"name={name}", "set",
                f"Priority={value}",
            )  # fmt: skip
            if answer.code != 0:
                if "Nothing modified" not in answer.output + answer.complaints:
                    raise failure("sacctmgr", answer.said, answer.code)
                refused[name] = _last_line(answer)
        if refused:
            present = self.qos_priorities()
            refused = {
                name: why if name in present else "no such QOS"
                for name, why in refused.items()
                if present.get(name) != values[name]
            }
        return refused

    def privilege(self, channel: Channel) -> str | None:
        """None if we may write to the channel, else what is missing and how to get it."""
        number = os.geteuid()
        slurm_user = text_config.user_number(self._configuration().get("SlurmUser", ""))
        if number in {0, slurm_user}:
            return None
        name = _user_name(number)
        shown = self._commands.read("sacctmgr", "-nP", "show", "user", name, "format=AdminLevel")
        level = shown.strip() or "None"
        needed = "Administrator" if channel is Channel.QOS else "Operator"
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
            told = answer.output.strip().split("\n")[0][:200] or _last_line(answer)
            raise no_answer("slurmctld", f"scontrol ping: {told}")

    def _configuration(self) -> dict[str, str]:
        self._ping()
        return text_config.configuration(self._commands.read("scontrol", "show", "config"))

    def _shown(self, parse: Callable[[str], Found | Malformed], *command: str) -> list[Found]:
        lines = self._commands.read(*command).split("\n")
        return [_readable(parse(line)) for line in lines if line.strip()]

    def _accounted(self, *which: str) -> Iterator[JobRecord | Malformed]:
        for line in self._commands.lines("sacct", *self._sacct, *which):
            if line:
                yield accounting_line(line, self._weight)


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


def _last_line(answer: Answer) -> str:
    lines = [line.strip() for line in answer.said.split("\n") if line.strip()]
    return lines[-1][:200] if lines else f"exit code {answer.code}"


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
