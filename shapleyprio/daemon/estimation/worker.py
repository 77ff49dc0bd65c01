"""Both ends of a worker: the daemon's, which asks and restarts it, and its own, which answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from time import process_time
from typing import Generic, TypeVar

from shapleyprio.common.workers import (
    LONGEST_COMPLAINT,
    PYTHON,
    LastingWorker,
    WorkerMessage,
    be_worker,
    last_words,
)
from shapleyprio.daemon.estimation.messages import (
    EstimateAnswer,
    EstimateRequest,
    WorkAnswer,
    WorkResult,
)
from shapleyprio.store import ClusterStore, Store, StoreError

INSTALL = "install the package shapleyprio-replay, or pip install 'shapleyprio[replay]'"

INSTEAD = ', or set fairness.rule to "directcontr"'

REMEDY = INSTALL + INSTEAD


def numpy_is_missing() -> bool:
    """Returns whether it is not installed."""
    return find_spec("numpy") is None


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


Answerer = Callable[[str], WorkAnswer]
"""From a request, as JSON, to its answer."""


def answer_requests(
    open_on: Callable[[ClusterStore], Answerer], kind: type[WorkAnswer], *, instead: str = ""
) -> None:
    """Answers every request on standard input with a line on standard output.

    The program's arguments are the cluster, the bytes of memory that it may take, and its
    lifeline. The store's URL is in its environment.

    Args:
        open_on: imports what answers need, and makes what gives them, for a cluster.
        kind: of the answers.
        instead: what to do else than to install or allow more, to append to such advice.
    """
    cluster, memory_limit, lifeline = sys.argv[1:]
    be_worker(int(lifeline), int(memory_limit))
    worker = _Worker(lambda: open_on(Store.open(os.environ[STORE]).cluster(cluster)), kind)
    worker.memory_limit, worker.instead = int(memory_limit), instead
    for line in sys.stdin:
        began = process_time()
        answer = worker.answer(line)
        print(replace(answer, cpu_seconds=process_time() - began).as_json(), flush=True)


class _Worker:
    """Opens the store at the first request, and keeps it open as long as it can be read."""

    memory_limit = 0
    instead = ""

    def __init__(self, opened: Callable[[], Answerer], kind: type[WorkAnswer]) -> None:
        self._open = opened
        self._kind = kind
        self._answerer: Answerer | None = None

    def answer(self, request: str) -> WorkAnswer:
        try:
            if self._answerer is None:
                self._answerer = self._open()
            return self._answerer(request)
        except ModuleNotFoundError as error:
            return self._kind(
                result=WorkResult.UNAVAILABLE,
                why=f"the Python package {error.name} is missing; {INSTALL}{self.instead}",
            )
        except MemoryError:
            self._answerer = None
            return self._kind(
                result=WorkResult.TOO_LARGE,
                why=f"{self.memory_limit / 2**30:.3g} GiB of memory were not enough; "
                f"raise estimation.memory_limit{self.instead}",
            )
        except StoreError as error:
            self._answerer = None
            return self._kind(result=WorkResult.FAILED, why=str(error))
