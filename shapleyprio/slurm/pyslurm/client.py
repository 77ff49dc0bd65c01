"""The daemon's end of the worker that holds pyslurm."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock

from shapleyprio.common.workers import PYTHON, LastingWorker, Reply, last_words
from shapleyprio.slurm.command_line.complaints import daemon_away, failure, no_answer
from shapleyprio.slurm.port import Connection, Controller, SlurmRefusedError, SlurmUnavailableError
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
