"""Worker processes of the daemon: long work beside its cycles that is in nobody's way.

A worker has the lowest priority, one core, a limit to its memory, and it ends when the daemon
does, however that ends.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from signal import SIGKILL
from typing import IO

ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""Turns off numpy's and numba's pools of threads: unused, they would take address space."""

OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "out of memory")
"""Last words of Python, C++ and LLVM; the kernel gives no warning and kills."""

LONGEST_COMPLAINT = 300
"""Characters of the worker's standard error that a message quotes."""

LOWEST_PRIORITY = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMessage:
    """A request to a worker, or its answer: a line of JSON."""

    def as_json(self) -> str:
        """Returns one line of JSON."""
        return json.dumps(asdict(self))


@contextmanager
def lifeline() -> Iterator[int]:
    """Yields the end to read of a pipe that only this process holds open."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        for end in (reading, writing):
            with suppress(OSError):
                os.close(end)


def start_worker(
    program: Sequence[str], lifeline: int, *, errors: int | IO[str] = subprocess.PIPE
) -> subprocess.Popen[str]:
    """Starts a worker that reads requests on standard input and answers on standard output.

    Args:
        program: with its arguments.
        lifeline: the end to read that the worker gets.
        errors: where its standard error goes.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        pass_fds=[lifeline],
        env={**os.environ, **ONE_THREAD},
    )


def last_words(code: int, complaints: str) -> str:
    """Returns how a worker ended, in a line."""
    last = ["no word", *filter(str.strip, complaints.splitlines())][-1][:LONGEST_COMPLAINT]
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"the worker ended with {ended}: {last}"


def starved(code: int, complaints: str) -> bool:
    """Returns whether a worker ended for want of memory."""
    return code == -SIGKILL or any(word in complaints for word in OUT_OF_MEMORY)


def be_worker(lifeline: int, memory_limit: int) -> None:
    """Makes this process a worker.

    Args:
        lifeline: descriptor of a pipe that is closed when the daemon is gone.
        memory_limit: bytes of address space.
    """
    threading.Thread(target=_end_with_the_daemon, args=[lifeline], daemon=True).start()
    os.nice(LOWEST_PRIORITY)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = memory_limit if hard == resource.RLIM_INFINITY else min(memory_limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _end_with_the_daemon(lifeline: int) -> None:
    os.read(lifeline, 1)  # nobody writes: it returns when the last one who could is gone
    os._exit(1)
