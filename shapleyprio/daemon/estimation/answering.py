"""A worker's end: it opens the store, answers requests, and says what is missing if it cannot."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from time import process_time

from shapleyprio.common.workers import be_worker
from shapleyprio.daemon.estimation.messages import WorkAnswer, WorkResult
from shapleyprio.daemon.estimation.packages import INSTALL
from shapleyprio.daemon.estimation.worker import STORE
from shapleyprio.store import ClusterStore, Store, StoreError

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
