"""Replays the last window in a worker process, and keeps and publishes what it found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from signal import SIGKILL
from threading import Lock
from time import monotonic

import structlog

from shapleyprio.config import Config
from shapleyprio.drift.figures import unfairness_of
from shapleyprio.drift.messages import SMALLER, Answer, Outcome, Request
from shapleyprio.service.metrics import Metrics
from shapleyprio.store import Store, StoreError

WORKER = (sys.executable, "-m", "shapleyprio.drift")

ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""Pools of threads that numpy and numba would make take address space, and are not used."""

OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "out of memory")
"""Last words of Python, C++ and LLVM; the kernel gives no warning and kills."""

LONGEST_COMPLAINT = 300
"""Characters."""

log = structlog.get_logger(__name__)


class LiveDrift:
    """Tells every now and then how far what happened is from what was fair.

    Args:
        store, cluster: where the runs are, and where what was found is kept.
        url: of the store, which the worker opens for itself.
        metrics: told what was found.
        worker: the program that answers a request; it gets it on standard input.
    """

    def __init__(
        self,
        store: Store,
        cluster: str,
        url: str,
        metrics: Metrics,
        worker: Sequence[str] = WORKER,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._url = url
        self._metrics = metrics
        self._worker = worker
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def replay(self, config: Config) -> None:
        """Replays the last window; whatever goes wrong is counted, logged, and left at that."""
        began = monotonic()
        try:
            answer = self._ask(config)
            if answer.rows:
                with self._store.transaction(self._cluster) as transaction:
                    transaction.save_drifts(answer.rows)
        except (OSError, StoreError) as error:
            answer = Answer(outcome=Outcome.FAILED, why=str(error))
        except Exception as defect:
            log.exception("defect in a replay of the last window")
            answer = Answer(outcome=Outcome.FAILED, why=repr(defect))
        if self._stopped:
            return
        seconds = monotonic() - began
        if answer.outcome is Outcome.OK:
            self._metrics.publish_drifts(answer.rows, seconds)
            sums = {name: float(drift) for name, drift in unfairness_of(answer.rows).items()}
            log.info("drift", t=answer.rows[0].t, unfairness=sums, seconds=round(seconds, 3))
        else:
            self._metrics.publish_drift_failure(answer.outcome.value)
            tell = log.info if answer.outcome is Outcome.NO_JOBS else log.warning
            tell("drift not replayed", outcome=answer.outcome.value, why=answer.why)

    def stop(self) -> None:
        """Ends a replay that is going on, and lets none begin."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def _ask(self, config: Config) -> Answer:
        limit = config.drift.time_limit
        with _lifeline() as lifeline:
            process = self._start(lifeline)
            if process is None:
                return Answer(outcome=Outcome.FAILED, why="the daemon is stopping")
            with process:
                try:
                    told, complaints = process.communicate(
                        self._request(config, lifeline).as_json() + "\n", timeout=limit
                    )
                except subprocess.TimeoutExpired:
                    return Answer(
                        outcome=Outcome.TOO_LONG,
                        why=f"it took more than {limit} s; raise drift.time_limit, {SMALLER}",
                    )
                finally:
                    process.kill()
        return _answer(process.returncode, told, complaints)

    def _start(self, lifeline: int) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._stopped:
                return None
            self._process = subprocess.Popen(
                self._worker,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                pass_fds=[lifeline],
                env={**os.environ, **ONE_THREAD, **_cache(os.environ)},
            )
            return self._process

    def _request(self, config: Config, lifeline: int) -> Request:
        return Request(
            url=self._url,
            cluster=self._cluster,
            organizations=tuple(one.name for one in config.organizations),
            window=config.drift.window,
            most_organizations=config.drift.most_organizations,
            memory_limit=config.drift.memory_limit,
            lifeline=lifeline,
        )


@contextmanager
def _lifeline() -> Iterator[int]:
    """The end to read of a pipe that only this process holds open."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        for end in (reading, writing):
            with suppress(OSError):
                os.close(end)


def _cache(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Where compiled code is kept, if systemd gave the daemon a place and nobody else said."""
    place = environment.get("CACHE_DIRECTORY", "").partition(":")[0]
    return {"NUMBA_CACHE_DIR": place} if place and "NUMBA_CACHE_DIR" not in environment else {}


def _answer(code: int, told: str, complaints: str) -> Answer:
    lines = told.splitlines()
    if code == 0 and lines:
        with suppress(ValueError, TypeError, KeyError):
            return Answer.from_json(lines[-1])
    last = ["no word", *filter(str.strip, complaints.splitlines())][-1][:LONGEST_COMPLAINT]
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    starved = code == -SIGKILL or any(word in complaints for word in OUT_OF_MEMORY)
    why = f"the worker ended with {ended}: {last}"
    if starved:
        return Answer(outcome=Outcome.TOO_LARGE, why=f"{why}; raise drift.memory_limit, {SMALLER}")
    return Answer(outcome=Outcome.FAILED, why=why)
