"""The daemon's end of the worker: asks it, and restarts it when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from shapleyprio.common.workers import LONGEST_COMPLAINT, PYTHON, LastingWorker, last_words
from shapleyprio.daemon.estimation.messages import EstimateAnswer, EstimateRequest, EstimateResult

STORE = "SHAPLEYPRIO_STORE_URL"
"""Variable with the store's URL for the worker: arguments, every user of the host can read."""

WORKER = (*PYTHON, "-m", "shapleyprio.daemon.estimation")


class EstimationWorker:
    """A process that answers requests, one after the other, for as long as it lives.

    Args:
        url: of the store, which it opens for itself.
        cluster: whose runs it reads.
        program: that answers; its arguments are added.
    """

    def __init__(self, url: str, cluster: str, program: Sequence[str]) -> None:
        self._cluster = cluster
        self._program = program
        self._worker = LastingWorker({STORE: url})

    def ask(
        self, request: EstimateRequest, *, memory_limit: int, time_limit: float
    ) -> EstimateAnswer:
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
            return EstimateAnswer(result=EstimateResult.FAILED, why=str(error))
        if reply is None:
            return EstimateAnswer(result=EstimateResult.FAILED, why="the daemon is stopping")
        with suppress(ValueError, TypeError, KeyError):
            return EstimateAnswer.from_json(reply.line)
        if reply.line:
            self._worker.end()
            why = f"the worker gave no answer, but {reply.line.strip()[:LONGEST_COMPLAINT]!r}"
            return EstimateAnswer(result=EstimateResult.FAILED, why=why)
        if reply.late:
            return EstimateAnswer(
                result=EstimateResult.TOO_LONG,
                why=f"it took more than {time_limit:g} s; raise estimation.time_limit, or lower "
                "estimation.coalitions",
            )
        why = last_words(reply.code, reply.complaints)
        if reply.starved:
            return EstimateAnswer(
                result=EstimateResult.TOO_LARGE, why=f"{why}; raise estimation.memory_limit"
            )
        return EstimateAnswer(result=EstimateResult.FAILED, why=why)

    def stop(self) -> None:
        """Ends the worker, whatever it is doing, and starts no other."""
        self._worker.stop()

    def close(self) -> None:
        """Frees what the ended worker has left; there may be no caller any more."""
        self._worker.end()
