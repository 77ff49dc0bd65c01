"""Reads of single jobs what they hold on each node, and the values at those that wait."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.command_line.commands import SlurmCommands
from shapleyprio.slurm.command_line.config import ping_now_and_then
from shapleyprio.slurm.port import SlurmRefusedError
from shapleyprio.slurm.text.queue import values_in
from shapleyprio.slurm.text.values import UnreadableError, hosts, length_of_ranges

GRES = "gres/"

_PART = re.compile(r"\sNodes=(\S+) CPU_IDs=([0-9,\-]+) Mem=\S* GRES=(\S*)")

_ONE_OF_MANY = re.compile("[0-9]+[_+][0-9]+")

_RESOURCE = re.compile(r"([^,:()]+)(?::([^,:()]+))?:([0-9]{1,9})(?:\([^)]*\))?(?:,|$)")


def can_be_counted(weight: str) -> bool:
    """Returns whether Slurm says of each node how much of it a job holds there."""
    return weight == "cpu" or weight.startswith(GRES)


def processors_held(text: str, weight: str, start: int) -> Mapping[str, int] | None:
    """Reads how many processors a job holds on each of its nodes.

    Names, comments and so on of the job are in the text as the user wrote them. What they can
    pretend names a node twice, so that the text counts as unclear.

    Args:
        text: of ``scontrol show job -d -o`` of one job, times in epoch seconds.
        weight: of which `can_be_counted`.
        start: second at which the execution began that is meant.

    Returns:
        node -> processors; None if the text shows another execution, or is not clear.

    >>> shown = " StartTime=100 End Nodes=a[1-2] CPU_IDs=0-3,6 Mem=0 GRES=gpu:tesla:2(IDX:0,3) M"
    >>> processors_held(shown, "cpu", 100)
    {'a1': 5, 'a2': 5}
    >>> processors_held(shown, "gres/gpu", 100)
    {'a1': 2, 'a2': 2}
    """
    if f" StartTime={start} " not in text:
        return None
    held: dict[str, int] = {}
    try:
        for nodes, processors, resources in _PART.findall(text):
            counted = length_of_ranges(processors) if weight == "cpu" else _gres(resources, weight)
            for node in hosts("Nodes", nodes):
                if node in held:
                    return None
                held[node] = counted
    except UnreadableError:
        return None
    return held


def _gres(text: str, weight: str) -> int:
    """Adds up a generic resource, of all its types or of the one that the weight names."""
    wanted, _, kind = weight.removeprefix(GRES).partition(":")
    return sum(
        int(count)
        for name, found, count in _RESOURCE.findall(text)
        if name == wanted and kind in {"", found}
    )


ONE_JOB = ("show", "job", "-d", "-o")


class CommandLineDetails:
    """How many processors jobs hold on each of their nodes.

    Args:
        commands: runs scontrol.
        weight: what counts as a processor: a TRES name such as ``cpu`` or ``gres/gpu``.
        weight_of: partition -> what does so there, if it is something else.
    """

    def __init__(self, commands: SlurmCommands, weight: str, weight_of: Mapping[str, str]) -> None:
        self._commands = commands
        self._weight = weight
        self._weight_of = weight_of

    def processors_of(self, runs: Iterable[Run]) -> Mapping[RunKey, Mapping[str, int]]:
        """Returns run -> node -> processors, as far as Slurm knows and says it clearly.

        Every job is asked for alone: its name, its comment and so on stand in the answer as its
        user has written them, and must not pass for those of another's job.
        """
        found: dict[RunKey, Mapping[str, int]] = {}
        for run in runs:
            weight = self._weight_of.get(run.partition, self._weight)
            if not can_be_counted(weight):
                continue
            try:
                shown = self._commands.read("scontrol", *ONE_JOB, _name_of(run))
            except SlurmRefusedError:  # Slurm has forgotten it
                continue
            held = processors_held(shown, weight, run.key.start)
            if held is not None:
                found[run.key] = held
        return found


def _name_of(run: Run) -> str:
    """Names a task by its array, and a component by its job: one's number may be that of all."""
    return run.label if _ONE_OF_MANY.fullmatch(run.label) else str(run.key.job_id)


SPRIO = ("-h", "--local", "-o")
SQUEUE = ("-h", "-a", "--local", "--array", "-t", "PD", "-o")

MOST_NAMED: Mapping[str, int] = {"sprio": 1, "squeue": 100}
"""Jobs that a command is asked for by their numbers: sprio 24.11 takes no list of them, and squeue
compares every pending job with every number, so that with many it is sooner done to read all."""

UNKNOWN = "Invalid job id specified"


class CommandLineValues:
    """What stands at pending jobs, through sprio and squeue.

    What slurmctld sends to sprio of a job is a small part of what it sends to squeue. But sprio
    shows no jobs that may not start; where some are missing, squeue knows whether they wait.

    Args:
        commands: runs them.
    """

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands

    def of(self, channel: str, job_ids: Collection[int]) -> Mapping[int, int | None]:
        """Returns job id -> its value; None where Slurm does not show it.

        Args:
            channel: that writes to jobs.
            job_ids: Slurm's own numbers; those of jobs that do not wait are left out.
        """
        if not job_ids:
            return {}
        field = CHANNELS[channel].job_field
        assert field is not None, f"channel {channel} writes no jobs"
        ping_now_and_then(self._commands)
        missing, found = set(job_ids), dict[int, int | None]()
        if field.sprio:
            found = self._asked("sprio", (*SPRIO, f"%i {field.sprio}"), missing)
            missing -= found.keys()
        if missing:
            found |= self._asked("squeue", (*SQUEUE, f"%A {field.squeue}".strip()), missing)
        return found

    def _asked(
        self, program: str, options: tuple[str, ...], job_ids: set[int]
    ) -> dict[int, int | None]:
        if len(job_ids) <= MOST_NAMED[program]:
            options = (*options, "-j", ",".join(map(str, sorted(job_ids))))
        return values_in(self._texts(program, options), job_ids)

    def _texts(self, program: str, options: tuple[str, ...]) -> Iterator[str]:
        try:
            yield from self._commands.texts(program, *options)
        except SlurmRefusedError as error:
            if UNKNOWN not in str(error):  # of the only job that was named
                raise
