"""A cluster spoken to through pyslurm where that serves, and through Slurm's commands elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.command_line.writes import OUT_OF_TIME
from shapleyprio.slurm.port import AdapterInUse, Connection, Controller, unchecked
from shapleyprio.slurm.pyslurm.client import WORKER, PyslurmClient, PyslurmUnusableError

Found = TypeVar("Found")

MOST_JOBS = 200
"""In one request to pyslurm; each one may take the whole time limit."""

REMEDY = (
    "build pyslurm for this release of Slurm (docs/pyslurm.md), or set slurm.adapter to "
    '"auto" or "command_line"'
)


class PyslurmSlurm(CommandLineSlurm):
    """The port `Slurm`, through pyslurm and Slurm's commands.

    What this class does not define is inherited from the command line: pyslurm lacks it, keeps one
    record per job (`records`), or reads one job per call (`values_of`). `write` leaves arrays and
    the other channels to commands, since pyslurm updates one job per call, by its number.

    Args:
        connection: settings; the environment is that of the library and the commands.
        falls_back: whether to go on with the commands alone where pyslurm does not fit.
        worker: the program that holds pyslurm.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        falls_back: bool = False,
        worker: Sequence[str] = WORKER,
    ) -> None:
        super().__init__(connection)
        self._pyslurm = PyslurmClient(connection, worker)
        self._falls_back = falls_back
        self._timeout_seconds = connection.timeout_seconds
        self._why_not = ""

    def adapter(self) -> AdapterInUse:
        """Names pyslurm, or the command line once this has fallen back to it."""
        if self._why_not:
            return AdapterInUse(name="command_line", instead_of="pyslurm", why=self._why_not)
        return AdapterInUse(name="pyslurm")

    def controller(self) -> Controller:
        """Asks the controller for its state."""
        by_commands = super().controller
        return self._first(lambda: self._less_ours(self._pyslurm.controller()), by_commands)

    def cluster(self) -> str:
        """Reads ClusterName."""
        return self._first(lambda: self._cluster or self._pyslurm.cluster(), super().cluster)

    def write(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float] = unchecked
    ) -> Mapping[str, str]:
        """Writes priorities, through pyslurm if all are of plain jobs.

        pyslurm changes a job by its number, so it knows no tasks of arrays; and what is written
        to them is not put off, for values are written in their order.
        """
        by_commands = super().write
        field = CHANNELS[channel].job_field
        if field is not None and field.pyslurm and all(map(_is_number, values)):
            return self._first(
                lambda: self._write(channel, field.pyslurm, values, check),
                lambda: by_commands(channel, values, check),
            )
        return by_commands(channel, values, check)

    def _write(
        self,
        channel: str,
        attribute: str,
        values: Mapping[str, int],
        check: Callable[[], float],
    ) -> Mapping[str, str]:
        refused = CHANNELS[channel].out_of_bounds(values)
        rest = [item for item in values.items() if item[0] not in refused]
        until = time.monotonic() + self._timeout_seconds
        for first in range(0, len(rest), MOST_JOBS):
            some = dict(rest[first : first + MOST_JOBS])
            alone_until = time.monotonic() + check()
            if time.monotonic() < until:
                self._writes.requests += len(some)
                refused |= self._pyslurm.write(attribute, some, until=alone_until)
            else:
                refused |= dict.fromkeys(some, OUT_OF_TIME)
        self._writes.check_privilege(channel, values, refused)
        return refused

    def _first(self, question: Callable[[], Found], instead: Callable[[], Found]) -> Found:
        """Asks pyslurm, or the commands once it is known that pyslurm does not fit."""
        if not self._why_not:
            try:
                return question()
            except PyslurmUnusableError as error:
                if not self._falls_back:
                    raise PyslurmUnusableError(f"{error}: {REMEDY}") from error
                self._why_not = str(error)
        return instead()


def _is_number(target: str) -> bool:
    return target.isascii() and target.isdigit()
