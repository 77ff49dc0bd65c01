"""The daemon's end of the worker: asks it, and starts it anew when it has ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from tempfile import TemporaryFile
from threading import Lock, Timer

from shapleyprio.estimation.messages import EstimateAnswer, EstimateRequest, EstimateResult
from shapleyprio.workers import LONGEST_COMPLAINT, last_words, lifeline, start_worker, starved

DYING_SECONDS = 5.0
"""A worker that has closed its output has so long to end with an exit code of its own."""

WORKER = (sys.executable, "-m", "shapleyprio.estimation")


class EstimationWorker:
    """A process that answers requests, one after the other, for as long as it lives.

    Args:
        url: of the store, which it opens for itself.
        cluster: whose runs it reads.
        program: that answers; its arguments are added.
    """

    def __init__(self, url: str, cluster: str, program: Sequence[str]) -> None:
        self._url = url
        self._cluster = cluster
        self._program = program
        self._lock = Lock()
        self._stopped = False
        self._process: subprocess.Popen[str] | None = None
        self._memory_limit = 0
        self._open = ExitStack()

    def ask(
        self, request: EstimateRequest, *, memory_limit: int, time_limit: float
    ) -> EstimateAnswer:
        """Asks and waits for the answer; whatever goes wrong is an answer too.

        Args:
            request: what is wanted.
            memory_limit: bytes of address space; a worker that has another limit is replaced.
            time_limit: seconds, after which the worker is killed.
        """
        late = False

        def give_up() -> None:
            nonlocal late
            late = True
            self._kill()

        timer = Timer(time_limit, give_up)
        timer.start()
        try:
            process = self._running(memory_limit)
            if process is None:
                return EstimateAnswer(result=EstimateResult.FAILED, why="the daemon is stopping")
            line = self._exchange(process, request)
        except OSError as error:
            return EstimateAnswer(result=EstimateResult.FAILED, why=str(error))
        finally:
            timer.cancel()
        with suppress(ValueError, TypeError, KeyError):
            return EstimateAnswer.from_json(line)
        code, complaints = self._end(dying=not line)
        if line:
            why = f"the worker gave no answer, but {line.strip()[:LONGEST_COMPLAINT]!r}"
            return EstimateAnswer(result=EstimateResult.FAILED, why=why)
        if late:
            return EstimateAnswer(
                result=EstimateResult.TOO_LONG,
                why=f"it took more than {time_limit:g} s; raise estimation.time_limit, or lower "
                "estimation.coalitions",
            )
        why = last_words(code, complaints)
        if starved(code, complaints):
            return EstimateAnswer(
                result=EstimateResult.TOO_LARGE, why=f"{why}; raise estimation.memory_limit"
            )
        return EstimateAnswer(result=EstimateResult.FAILED, why=why)

    def stop(self) -> None:
        """Ends the worker, whatever it is doing, and starts no other."""
        with self._lock:
            self._stopped = True
        self._kill()

    def close(self) -> None:
        """Frees what the ended worker has left; nobody may be asking any more."""
        self._end()

    def _running(self, memory_limit: int) -> subprocess.Popen[str] | None:
        if self._process is not None and self._memory_limit != memory_limit:
            self._end()
        with self._lock:
            if self._stopped:
                return None
            if self._process is None:
                line = self._open.enter_context(lifeline())
                self._errors = self._open.enter_context(  # as long as the worker lives
                    TemporaryFile("w+")  # noqa: SIM115
                )
                program = [*self._program, self._url, self._cluster, str(memory_limit), str(line)]
                self._process = start_worker(program, line, errors=self._errors)
                self._memory_limit = memory_limit
            return self._process

    def _exchange(self, process: subprocess.Popen[str], request: EstimateRequest) -> str:
        """Returns the line that answers; it is empty if the worker ends instead."""
        assert process.stdin is not None, "a worker reads its requests there"
        assert process.stdout is not None, "a worker writes its answers there"
        with suppress(BrokenPipeError):
            process.stdin.write(request.as_json() + "\n")
            process.stdin.flush()
        return process.stdout.readline()

    def _kill(self) -> None:
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def _end(self, *, dying: bool = False) -> tuple[int, str]:
        """Ends the worker; returns its exit code and what it complained about.

        Args:
            dying: it is about to end by itself.
        """
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return 0, ""
            with suppress(subprocess.TimeoutExpired):  # one that ends by itself has its own code
                process.wait(DYING_SECONDS if dying else 0)
            process.kill()
            with suppress(BrokenPipeError):  # a request that it did not read
                process.communicate()
            self._errors.seek(0)
            complaints = self._errors.read()
            self._open.close()
            return process.returncode, complaints
