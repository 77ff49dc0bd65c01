"""Worker processes of the daemon, and how they and the daemon tell each other records.

They do work that must not be in the way of the daemon's other threads. A worker has one core and
ends when the daemon does, however that ends. One that does long work beside the cycles also has the
lowest priority and a limit to its memory. A message is a line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, is_dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryFile
from types import NoneType, UnionType
from typing import Any, Self, get_args, get_origin, get_type_hints

Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMessage:
    """A request to a worker, or its answer: a line of JSON."""

    def as_json(self) -> str:
        """Returns one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `as_json` wrote."""
        kind: Any = cls
        message: Self = _reader(kind)(json.loads(text))
        return message


def _as_it_is(value: Any) -> Any:
    return value


@cache
def _reader(kind: Any) -> Read:
    """Returns what makes a value of a type of what JSON has of it."""
    parts = get_args(kind)
    if isinstance(kind, UnionType):
        read = _reader(next(part for part in parts if part is not NoneType))
        return lambda value: None if value is None else read(value)
    if get_origin(kind) is Mapping:
        key, read = int if parts[0] is int else _as_it_is, _reader(parts[1])
        return lambda value: {key(name): read(found) for name, found in value.items()}
    if get_origin(kind) is tuple:
        return _tuple_reader(parts)
    if is_dataclass(kind):
        return _record_reader(kind)
    if issubclass(kind, tuple):
        read = _tuple_reader(tuple(get_type_hints(kind).values()))
        return lambda value: kind(*read(value))
    return kind if issubclass(kind, StrEnum) else _as_it_is


def _tuple_reader(parts: tuple[Any, ...]) -> Read:
    if parts[-1] is ...:
        read = _reader(parts[0])
        return lambda value: tuple(map(read, value))
    readers = list(map(_reader, parts))
    return lambda value: tuple(read(found) for read, found in zip(readers, value, strict=True))


def _record_reader(kind: Any) -> Read:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
    other = {name: read for name, read in readers.items() if read is not _as_it_is}
    if not other:
        return lambda value: kind(**value)
    return lambda value: kind(
        **{**value, **{name: read(value[name]) for name, read in other.items()}}
    )


PYTHON = (sys.executable, "-I")
"""Starts every child in Python: it imports nothing from the current directory, PYTHONPATH or a
home directory, where somebody else may have put it."""

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Turns off numpy's pools of threads: unused, they would take address space."""

OUT_OF_MEMORY = ("MemoryError", "bad_alloc")
"""Last words of Python and C++; the kernel gives no warning, kills, and counts in ..."""

VMSTAT = Path("/proc/vmstat")

LONGEST_COMPLAINT = 300
"""Characters of the worker's standard error that a message quotes."""

LOWEST_PRIORITY = 19

DYING_SECONDS = 5.0
"""A worker that has closed its output has so long to end with an exit code of its own."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What became of a request to a worker.

    Attributes:
        line: that it answered; empty if it ended instead.
        late: whether it was killed because its time was up.
        code: its exit code; 0 while it lives.
        complaints: its standard error; empty while it lives.
        starved: whether it ended for want of memory.
    """

    line: str
    late: bool = False
    code: int = 0
    complaints: str = ""
    starved: bool = False


class LastingWorker:
    """A process that answers requests, one after the other, for as long as it lives.

    It is started for the first request, and again for the first one after its end.

    Args:
        environment: variables for it, beside our own.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment or {}
        self._lock = threading.Lock()
        self._stopped = False
        self._program: Sequence[str] = ()
        self._process: subprocess.Popen[str] | None = None
        self._open = ExitStack()

    def ask(self, program: Sequence[str], request: str, time_limit: float) -> Reply | None:
        """Asks and waits for the answer, which is one line; one caller at a time.

        Args:
            program: that answers, with its arguments; its lifeline is added to them. A worker
                that runs another one is replaced.
            request: one line, without its end.
            time_limit: seconds, after which the worker is killed.

        Returns:
            What became of it; None if `stop` was called before.

        Raises:
            OSError: the worker cannot be started.
        """
        late = False

        def give_up() -> None:
            nonlocal late
            late = True
            self._kill()

        timer = threading.Timer(time_limit, give_up)
        killed = killed_for_memory()
        timer.daemon = True  # no one waits for a timer of whoever has ended meanwhile
        timer.start()
        try:
            process = self._running(program)
            if process is None:
                return None
            line = _exchange(process, request)
        finally:
            timer.cancel()
        if line:
            self._errors.truncate(0)
            return Reply(line=line)
        code, complaints = self.end(dying=True)
        return Reply(
            line="",
            late=late,
            code=code,
            complaints=complaints,
            starved=starved(code, complaints, killed),
        )

    def stop(self) -> None:
        """Ends the worker, whatever it is doing, and starts no other."""
        with self._lock:
            self._stopped = True
        self._kill()

    def end(self, *, dying: bool = False) -> tuple[int, str]:
        """Ends the worker and frees what it leaves; there may be no caller.

        Args:
            dying: it is about to end by itself.

        Returns:
            Its exit code and what it complained about.
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

    def _running(self, program: Sequence[str]) -> subprocess.Popen[str] | None:
        if self._process is not None and program != self._program:
            self.end()
        with self._lock:
            if self._stopped:
                return None
            if self._process is None:
                line = self._open.enter_context(lifeline())
                # as long as the worker lives; what is appended stands at the end of what is left
                self._errors = self._open.enter_context(TemporaryFile("a+"))  # noqa: SIM115
                self._process = subprocess.Popen(
                    [*program, str(line)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    text=True,
                    pass_fds=[line],
                    env={**os.environ, **ONE_THREAD, **self._environment},
                )
                self._program = program
            return self._process

    def _kill(self) -> None:
        with self._lock:
            if self._process is not None:
                self._process.kill()


def _exchange(process: subprocess.Popen[str], request: str) -> str:
    """Returns the line that answers; it is empty if the worker ends instead."""
    assert process.stdin is not None, "a worker reads its requests there"
    assert process.stdout is not None, "a worker writes its answers there"
    with suppress(BrokenPipeError):
        process.stdin.write(request + "\n")
        process.stdin.flush()
    return process.stdout.readline()


def last_words(code: int, complaints: str) -> str:
    """Returns how a worker ended, in a line."""
    last = ["no word", *filter(str.strip, complaints.splitlines())][-1][:LONGEST_COMPLAINT]
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"the worker ended with {ended}: {last}"


def killed_for_memory() -> int:
    """Counts the processes that the kernel has killed for want of memory since it started."""
    with suppress(OSError):
        for line in VMSTAT.read_text(encoding="ascii").splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
    return 0


def starved(code: int, complaints: str, killed: int) -> bool:
    """Returns whether a worker ended for want of memory, not because somebody killed it.

    Args:
        code: its exit code.
        complaints: its standard error.
        killed: what `killed_for_memory` returned while it lived.
    """
    if any(word in complaints for word in OUT_OF_MEMORY):
        return True
    return code == -SIGKILL and killed_for_memory() > killed


def be_worker(lifeline: int, memory_limit: int) -> None:
    """Makes this process a worker.

    Args:
        lifeline: descriptor of a pipe that is closed when the daemon is gone.
        memory_limit: bytes of address space.
    """
    end_with_the_daemon(lifeline)
    os.nice(LOWEST_PRIORITY)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = memory_limit if hard == resource.RLIM_INFINITY else min(memory_limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def end_with_the_daemon(lifeline: int) -> None:
    """Lets this process end when the daemon does, however that ends.

    Args:
        lifeline: descriptor of a pipe that is closed when the daemon is gone.
    """
    threading.Thread(target=_await_the_end, args=[lifeline], daemon=True).start()


def _await_the_end(lifeline: int) -> None:
    os.read(lifeline, 1)  # no one writes: it returns when the last one who could is gone
    os._exit(1)
