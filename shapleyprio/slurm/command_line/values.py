"""Reads the values at some pending jobs through Slurm's own commands, without the whole queue."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.command_line.commands import SlurmCommands
from shapleyprio.slurm.command_line.config import ping
from shapleyprio.slurm.port import SlurmRefusedError
from shapleyprio.slurm.text.queue import values_in

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
        ping(self._commands)
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
