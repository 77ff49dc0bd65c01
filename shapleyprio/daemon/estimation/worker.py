"""The daemon's end of a worker: asks it, and restarts it when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from shapleyprio.common.messages import WorkerMessage
from shapleyprio.common.workers import LONGEST_COMPLAINT, PYTHON, LastingWorker, last_words
from shapleyprio.daemon.estimation.messages import (
    EstimateAnswer,
    EstimateRequest,
    WorkAnswer,
    WorkResult,
)

STORE = "SHAPLEYPRIO_STORE_URL"
"""Variable with the store's URL for the worker: arguments, every user of the host can read."""

WORKER = (*PYTHON, "-m", "shapleyprio.daemon.estimation")

Request = TypeVar("Request", bound=WorkerMessage)
Answer = TypeVar("Answer", bound=WorkAnswer)


class StoreWorker(Generic[Request, Answer]):
    """A process that answers requests, one after the other, for as long as it lives.

    Args:
        url: of the store, which it opens for itself.
        cluster: whose runs it reads.
        program: that answers; its arguments are added.

    Attributes:
        kind: of its answers.
        cheaper: how to make them take less time, to append to the advice to allow more.
    """

    kind: type[Answer]
    cheaper = ""

    def __init__(self, url: str, cluster: str, program: Sequence[str]) -> None:
        self._cluster = cluster
        self._program = program
        self._worker = LastingWorker({STORE: url})

    def ask(self, request: Request, *, memory_limit: int, time_limit: float) -> Answer:
        """Asks and waits for the answer; whatever goes wrong is an answer too.

        Args:
            request: what is wanted.
            memory_limit: bytes of address space; a worker that has another limit is replaced.
            time_limit: seconds, after which the worker is killed.
        """
        program = [*self._program, self._cluster, str(memory_limit)]
        try:
            reply = self._worker.ask(program, request.as_json(), time_limit)
        except OSError as error:
            return self.kind(result=WorkResult.FAILED, why=str(error))
        if reply is None:
            return self.kind(result=WorkResult.FAILED, why="the daemon is stopping")
        with suppress(ValueError, TypeError, KeyError):
            return self.kind.from_json(reply.line)
        if reply.line:
            self._worker.end()
            why = f"the worker printed no answer, but {reply.line.strip()[:LONGEST_COMPLAINT]!r}"
            return self.kind(result=WorkResult.FAILED, why=why)
        if reply.late:
            return self.kind(
                result=WorkResult.TOO_LONG,
                why=f"it took more than {time_limit:g} s; "
                f"raise estimation.time_limit{self.cheaper}",
            )
        why = last_words(reply.code, reply.complaints)
        if reply.starved:
            return self.kind(
                result=WorkResult.TOO_LARGE, why=f"{why}; raise estimation.memory_limit"
            )
        return self.kind(result=WorkResult.FAILED, why=why)

    def stop(self) -> None:
        """Ends the worker, whatever it is doing, and starts no other."""
        self._worker.stop()

    def close(self) -> None:
        """Frees what the ended worker has left; there may be no caller any more."""
        self._worker.end()


class EstimationWorker(StoreWorker[EstimateRequest, EstimateAnswer]):
    """A process that estimates contributions."""

    kind = EstimateAnswer
    cheaper = ", or lower estimation.coalitions"
