"""A cluster spoken to through pyslurm's worker where that serves, else through commands."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import TypeVar

from shapleyprio.common.workers import PYTHON, LastingWorker, Reply, last_words
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.command_line.complaints import daemon_away, failure, no_answer
from shapleyprio.slurm.command_line.orders import OUT_OF_TIME
from shapleyprio.slurm.port import (
    AdapterInUse,
    Connection,
    Controller,
    SlurmRefusedError,
    SlurmUnavailableError,
    unchecked,
)
from shapleyprio.slurm.pyslurm.messages import Outcome, PyslurmAnswer, PyslurmRequest, Question

WORKER = (*PYTHON, "-m", "shapleyprio.slurm.pyslurm")


class PyslurmUnusableError(SlurmRefusedError):
    """pyslurm does not fit this host or this cluster."""


class PyslurmClient:
    """Asks the worker, one request at a time; it ends with the client.

    Every method raises SlurmUnavailableError when no answer comes within the time limit, and the
    worker is killed then; PyslurmUnusableError when pyslurm does not fit.

    Args:
        connection: settings; the environment is the library's.
        program: the worker.
    """

    def __init__(self, connection: Connection, program: Sequence[str] = WORKER) -> None:
        self._program = program
        self._time_limit = connection.timeout_seconds
        self._worker = LastingWorker(connection.environment)
        self._lock = Lock()
        weakref.finalize(self, self._worker.stop)

    def cluster(self) -> str:
        """Reads ClusterName."""
        return self._ask(PyslurmRequest(question=Question.CLUSTER)).name

    def controller(self) -> Controller:
        """Asks the controller for its state."""
        answer = self._ask(PyslurmRequest(question=Question.CONTROLLER))
        numbers = answer.numbers
        return Controller(
            time=numbers["time"],
            accounting_backlog=numbers["accounting_backlog"],
            submitted=numbers["submitted"],
            changed=numbers["changed"],
        )

    def write(
        self, attribute: str, values: Mapping[str, int], *, until: float = math.inf
    ) -> Mapping[str, str]:
        """Writes one attribute of jobs.

        Args:
            attribute: as pyslurm calls it.
            values: number of a job -> its new value.
            until: second of the monotonic clock, which all processes of a host share, after which
                the worker begins no other write.

        Returns:
            Number of a job -> why Slurm would not change it.
        """
        request = PyslurmRequest(
            question=Question.WRITE, attribute=attribute, values=values, until=until
        )
        return self._ask(request).refused

    def _ask(self, request: PyslurmRequest) -> PyslurmAnswer:
        with self._lock:
            reply = self._reply(request)
            answer = None
            with suppress(ValueError, TypeError, KeyError):
                answer = PyslurmAnswer.from_json(reply.line)
            if reply.line and answer is None:
                self._worker.end()
        if answer is not None:
            return _good(answer)
        if reply.late:
            raise no_answer("slurmctld", f"pyslurm took longer than {self._time_limit:g} s")
        if reply.line:
            raise PyslurmUnusableError(f"pyslurm printed no answer, but {reply.line[:200]!r}")
        if daemon_away("scontrol", reply.complaints) is not None:
            raise failure("pyslurm", reply.complaints, reply.code)
        raise PyslurmUnusableError(f"pyslurm: {last_words(reply.code, reply.complaints)}")

    def _reply(self, request: PyslurmRequest) -> Reply:
        reply = self._try(request)
        if reply.line or reply.late:
            return reply
        return self._try(request)  # something had killed it, which shows with the next request

    def _try(self, request: PyslurmRequest) -> Reply:
        try:
            reply = self._worker.ask(self._program, request.as_json(), self._time_limit)
        except OSError as error:
            raise SlurmUnavailableError(f"pyslurm's worker: {error}") from error
        assert reply is not None, "the worker is stopped after the last request"
        return reply


def _good(answer: PyslurmAnswer) -> PyslurmAnswer:
    if answer.outcome is Outcome.UNUSABLE:
        raise PyslurmUnusableError(answer.why)
    if answer.outcome is Outcome.FAILED:
        raise failure("pyslurm", answer.why, 1)
    return answer


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
