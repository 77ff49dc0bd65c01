"""Runs Slurm's commands, each within a time limit."""

from __future__ import annotations

import errno
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from shapleyprio.common.workers import PYTHON
from shapleyprio.slurm.command_line import alarmed
from shapleyprio.slurm.command_line.complaints import daemon_away, daemon_of, failure, no_answer
from shapleyprio.slurm.command_line.orders import Orders
from shapleyprio.slurm.port import SlurmError, SlurmUnavailableError, unchecked

FOREIGN = ("SACCT_", "SQUEUE_", "SPRIO_", "SDIAG_", "SCONTROL_", "SLURM_CLUSTERS", "SLURM_TIME_")
"""Variables by which a user changes what the commands print or whom they ask."""

FIXED = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
SAME_ZONE = {"TZ": ":/etc/localtime"}
"""The zone that is in force where TZ is not set; but then the C library rereads that file for
every time that is printed, which takes longer than all the rest of a line."""

CHUNK_BYTES = 1 << 16
LONGEST_LINE_BYTES = 1 << 22
MOST_COMPLAINT_BYTES = 1 << 22

FED_AHEAD_BYTES = 1 << 12
"""Orders that may lie before a command that has not read them yet."""

FEEDING_REST_SECONDS = 0.005
"""A command that is fed prints some bytes for each order; to read them one by one would cost more
than all the rest of feeding it."""

ALARMED: Sequence[str] = (*PYTHON, "-S", alarmed.__file__)
"""Stands before the second of the monotonic clock by which a command is to end, and the command."""


@dataclass(frozen=True, slots=True)
class SlurmAnswer:
    """What a command printed.

    Attributes:
        program: its name.
        code: its exit code.
        output: its standard output.
        complaints: its standard error.
        undone: order that it was fed and perhaps did not do -> why.
    """

    program: str
    code: int
    output: str
    complaints: str
    undone: Mapping[str, str] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """What it has to say about its failure."""
        return self.complaints.strip() or self.output.strip()


@dataclass(slots=True)
class _Ended:
    """How a command ends.

    Attributes:
        by: second of the monotonic clock by which it ends, even if this process is frozen then.
        code: its exit code.
        complaints: its standard error.
    """

    by: float = math.inf
    code: int = 0
    complaints: bytearray = field(default_factory=bytearray)

    @property
    def was_cut(self) -> bool:
        """Whether its time was up."""
        return self.code == -signal.SIGALRM

    def complain(self, chunk: bytes) -> None:
        """Adds a piece of its standard error."""
        if len(self.complaints) < MOST_COMPLAINT_BYTES:
            self.complaints += chunk


@dataclass(slots=True)
class _EndsWithoutDaemon(_Ended):
    """How a command ends that is not to go on when a daemon is away.

    Attributes:
        program: its name.
    """

    program: str = ""

    def complain(self, chunk: bytes) -> None:
        """Raises the error if the complaint is about an outage."""
        begin = self.complaints.rfind(b"\n") + 1  # the chunk may go on with a line
        said = _text(self.complaints[begin:] + chunk)
        _Ended.complain(self, chunk)
        if daemon_away(self.program, said) is not None:
            raise failure(self.program, said, 1)


class SlurmCommands:
    """Runs Slurm's commands.

    Args:
        timeout_seconds: time limit of one command, from its start to its end.
        bin_directory: where the commands are; None for the PATH.
        environment: variables for them, beside our own.

    Attributes:
        up_until: second of the monotonic clock until which slurmctld is taken to be up.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float,
        bin_directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.timeout_seconds = timeout_seconds
        self.up_until = -math.inf
        self._bin_directory = bin_directory
        own = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        self._environment = {**SAME_ZONE, **own, **(environment or {}), **FIXED}

    def run(self, program: str, *arguments: str, within: float = math.inf) -> SlurmAnswer:
        """Runs a command to its end, whatever its exit code.

        Args:
            program: the command.
            arguments: of the command.
            within: seconds after which it is ended, even if this process is frozen then.

        Raises:
            SlurmUnavailableError: it is not there or took too long.
        """
        ended = _Ended(time.monotonic() + within)
        output = b"".join(self._chunks([program, *arguments], ended))
        if ended.was_cut:
            raise self._too_slow(program, within)
        return SlurmAnswer(program, ended.code, _text(output), _text(ended.complaints))

    def read(self, program: str, *arguments: str) -> str:
        """Runs a command that must succeed and returns its standard output.

        Raises:
            SlurmError: it failed.
        """
        answer = self.run(program, *arguments)
        if answer.code != 0:
            raise failure(program, answer.said, answer.code)
        return answer.output

    def lines(self, program: str, *arguments: str) -> Iterator[str]:
        """Runs a command that must succeed and yields its lines as they come; see `texts`."""
        for text in self.texts(program, *arguments):
            yield from text.split("\n")

    def texts(self, program: str, *arguments: str) -> Iterator[str]:
        """Runs a command that must succeed and yields what it prints as it comes, in whole lines.

        Of each piece the last line end is left out.
        The time limit counts the time spent waiting for the command, not the reader's own.

        Raises:
            SlurmError: it failed; after the lines it printed before it did.
        """
        ended = _Ended()
        rest = b""
        for chunk in self._chunks([program, *arguments], ended):
            complete, newline, chunk_rest = chunk.rpartition(b"\n")
            if newline:
                yield _text(rest + complete)
                rest = chunk_rest
            else:
                rest += chunk
            if len(rest) > LONGEST_LINE_BYTES:
                raise SlurmUnavailableError(f"{program} printed an unfinished line")
        if ended.code != 0:
            raise failure(program, _text(ended.complaints), ended.code)
        if rest:
            yield _text(rest)

    def feed(
        self,
        program: str,
        orders: Iterable[str],
        *arguments: str,
        check: Callable[[], float] = unchecked,
    ) -> SlurmAnswer:
        """Runs a command that takes orders from its standard input, one a line.

        It must prompt for each order, as scontrol and sacctmgr do, for that shows that it still
        works. Orders are taken as it comes to read them, and none when the time limit has passed
        since the start; it ends when it has done those that were taken. Where the check says that
        others may write some time, the command lives no longer than until then, even if this
        process is frozen, and others of its kind go on with the orders; one over which two of
        them were killed is left undone.

        Args:
            program: the command.
            orders: each one line of printable ASCII, and no two alike.
            arguments: of the command.
            check: called at once before each handful of orders is given to the command; if it
                raises, the command is ended, and does not do the orders that it has not read.
                Returns for how many seconds no other process writes.

        Returns:
            what it had to say; its output is left out.

        Raises:
            SlurmUnavailableError: it printed nothing for the time limit, or complained that a
                daemon is away. It was ended at once, and did not do the orders after that.
        """
        until = time.monotonic() + self.timeout_seconds
        feed = Orders(program, orders, check)
        code, complaints = 0, ""
        while True:
            within = check()
            now = time.monotonic()
            ended = _EndsWithoutDaemon(now + within, program=program)
            feed.until = min(until, now + within / 2)  # the other half to do what it has taken
            for chunk in self._chunks([program, *arguments], ended, feed):
                feed.hear(chunk)
                time.sleep(FEEDING_REST_SECONDS)
            is_late = time.monotonic() >= until
            if not ended.was_cut:
                feed.begin()
                code, complaints = ended.code or code, complaints + _text(ended.complaints)
                if feed.are_done or feed.are_unread or is_late:
                    return SlurmAnswer(program, code, "", complaints, feed.undone)
            elif is_late:
                raise self._too_slow(program)
            else:
                feed.repeat(within / 2)

    def _chunks(
        self, argv: Sequence[str], ended: _Ended, orders: Orders | None = None
    ) -> Iterator[bytes]:
        """Yields standard output in pieces; afterwards ``ended`` has exit code and errors.

        The time limit is that of the whole command, or with orders that from piece to piece.
        """
        patience = self.timeout_seconds
        with (
            self._started(argv, ended.by, fed=orders is not None) as process,
            selectors.DefaultSelector() as selector,
        ):
            assert process.stdout is not None
            assert process.stderr is not None
            for stream in (process.stdout, process.stderr):
                selector.register(stream, selectors.EVENT_READ)
            if process.stdin is not None:
                selector.register(process.stdin, selectors.EVENT_WRITE, orders)
            while selector.get_map():
                began = time.monotonic()
                ready = selector.select(max(patience, 0))
                patience -= time.monotonic() - began
                if not ready:
                    raise self._too_slow(argv[0])
                for key, _ in ready:
                    if key.data is not None:
                        key.data.write(key.fileobj, selector)
                    elif not (chunk := os.read(key.fd, CHUNK_BYTES)):
                        selector.unregister(key.fileobj)
                    elif key.fileobj is process.stderr:
                        ended.complain(chunk)
                    else:
                        yield chunk
                        patience = patience if orders is None else self.timeout_seconds
            ended.code = self._code_of(process, argv[0], patience)

    def _code_of(self, process: subprocess.Popen[bytes], program: str, patience: float) -> int:
        try:
            return process.wait(max(patience, 0.1))
        except subprocess.TimeoutExpired:
            raise self._too_slow(program) from None

    @contextmanager
    def _started(
        self, argv: Sequence[str], by: float, *, fed: bool
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Yields a running command, whose whole process group is gone in the end."""
        program = argv[0]
        path = program if self._bin_directory is None else str(self._bin_directory / program)
        before = (*ALARMED, str(by)) if math.isfinite(by) else ()
        try:
            process = subprocess.Popen(
                [*before, path, *argv[1:]],
                env=self._environment,
                stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pipesize=FED_AHEAD_BYTES if fed else -1,
                start_new_session=True,
            )
        except OSError as error:
            raise self._not_started(program, error) from error
        if process.stdin is not None:  # or writing would wait while nobody reads the output
            os.set_blocking(process.stdin.fileno(), False)
        try:
            with process:
                try:
                    yield process
                finally:
                    if process.poll() is None:
                        with suppress(ProcessLookupError):
                            os.killpg(process.pid, signal.SIGKILL)
        finally:
            process.wait()

    def _not_started(self, program: str, error: OSError) -> SlurmError:
        if error.filename == ALARMED[0]:
            return SlurmUnavailableError(
                f"{program} cannot be started: this user may not run the Python that starts it,"
                f" {ALARMED[0]} ({error.strerror}): install shapleyprio where"
                " every user can read it"
            )
        if error.errno not in {errno.ENOENT, errno.EACCES, errno.ENOTDIR}:
            return SlurmUnavailableError(f"{program} cannot be started: {error.strerror}")
        where = f"in {self._bin_directory}" if self._bin_directory is not None else "on the PATH"
        return SlurmUnavailableError(
            f"{program} was not found {where}: install Slurm's client commands on this host"
            " or name the directory they are in"
        )

    def _too_slow(self, program: str, within: float = math.inf) -> SlurmUnavailableError:
        limit = min(within, self.timeout_seconds)
        return no_answer(daemon_of(program), f"{program} took longer than {limit:g} s")


def _text(raw: bytes | bytearray) -> str:
    return raw.decode("utf-8", errors="replace")
