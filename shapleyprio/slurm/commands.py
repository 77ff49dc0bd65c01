"""Runs Slurm's commands, each within a time limit, and names the cause of their failures."""

from __future__ import annotations

import errno
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from shapleyprio.slurm.port import SlurmError, SlurmRefusedError, SlurmUnavailableError

FOREIGN = ("SACCT_", "SQUEUE_", "SPRIO_", "SDIAG_", "SCONTROL_", "SLURM_CLUSTERS", "SLURM_TIME_")
"""Variables by which a user changes what the commands print or whom they ask."""

FIXED = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
SAME_ZONE = {"TZ": ":/etc/localtime"}
"""The zone that is in force where TZ is not set; but then the C library looks at that file anew for
every time that is printed, which takes longer than all the rest of a line."""

CHUNK_BYTES = 1 << 16
LONGEST_LINE_BYTES = 1 << 22
MOST_COMPLAINT_BYTES = 1 << 22
LONGEST_CAUSE = 200

_ACCOUNTING_COMMANDS = frozenset({"sacct", "sacctmgr"})
_MUNGE = re.compile(
    r"munged?\b.*(encode|decode|socket|failed)|invalid (munge|authentication) cred"
    r"|protocol authentication error",
    re.IGNORECASE,
)
_DATABASE = re.compile(r"unable to connect to database", re.IGNORECASE)
_NO_ANSWER = re.compile(
    r"unable to contact|connect failure|connection (refused|reset|timed out)|timed out"
    r"|unexpected message received|zero bytes were transmitted|problem talking to the database"
    r"|sending persistinit|unable to establish|standby mode|no route to host"
    r"|network is unreachable|resource temporarily unavailable|unable to resolve"
    r"|name or service not known|communication (connection|shutdown) failure"
    r"|unexpected missing socket|message (send|receive) failure|insane message length"
    r"|header lengths are longer",
    re.IGNORECASE,
)
_HINT = re.compile(r"(try|use) [\"'].*\b(help|usage|modify condition)\b", re.IGNORECASE)
_REMEDIES = {
    "munge": "see whether munged runs on this host (`munge -n | unmunge`)",
    "slurmdbd": "see whether slurmdbd runs, and its log",
    "slurmdbd's database": "see whether the database server runs, and slurmdbd's log",
    "slurmctld": "see `scontrol ping` and slurmctld's log",
}


@dataclass(frozen=True, slots=True)
class SlurmAnswer:
    """What a command printed.

    Attributes:
        program: its name.
        code: its exit code.
        output: its standard output.
        complaints: its standard error.
    """

    program: str
    code: int
    output: str
    complaints: str

    @property
    def said(self) -> str:
        """What it has to say about its failure."""
        return self.complaints.strip() or self.output.strip()


@dataclass(slots=True)
class _Ended:
    code: int = 0
    complaints: bytearray = field(default_factory=bytearray)


class SlurmCommands:
    """Runs Slurm's commands.

    Args:
        timeout_seconds: time limit of one command, from its start to its end.
        bin_directory: where the commands are; None for the PATH.
        environment: variables for them, beside our own.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float,
        bin_directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.timeout_seconds = timeout_seconds
        self._bin_directory = bin_directory
        own = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        self._environment = {**SAME_ZONE, **own, **(environment or {}), **FIXED}

    def run(self, program: str, *arguments: str) -> SlurmAnswer:
        """Runs a command to its end, whatever its exit code.

        Raises:
            SlurmUnavailableError: it is not there or took too long.
        """
        ended = _Ended()
        output = b"".join(self._chunks([program, *arguments], ended))
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
        """Runs a command that must succeed and yields its lines as they come.

        The time limit counts the time spent waiting for the command, not the reader's own.

        Raises:
            SlurmError: it failed; after the lines it printed before it did.
        """
        ended = _Ended()
        rest = b""
        for chunk in self._chunks([program, *arguments], ended):
            *complete, rest = (rest + chunk).split(b"\n")
            for line in complete:
                yield _text(line)
            if len(rest) > LONGEST_LINE_BYTES:
                raise SlurmUnavailableError(f"{program} printed a line without an end")
        if ended.code != 0:
            raise failure(program, _text(ended.complaints), ended.code)
        if rest:
            yield _text(rest)

    def _chunks(self, argv: Sequence[str], ended: _Ended) -> Iterator[bytes]:
        """Yields standard output in pieces; afterwards ``ended`` has exit code and errors."""
        patience = self.timeout_seconds
        with self._started(argv) as process, selectors.DefaultSelector() as selector:
            assert process.stdout is not None
            assert process.stderr is not None
            output = process.stdout.fileno()
            for stream in (process.stdout, process.stderr):
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                began = time.monotonic()
                ready = selector.select(max(patience, 0))
                patience -= time.monotonic() - began
                if not ready:
                    raise self._too_slow(argv[0])
                for key, _ in ready:
                    chunk = os.read(key.fd, CHUNK_BYTES)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    elif key.fd == output:
                        yield chunk
                    elif len(ended.complaints) < MOST_COMPLAINT_BYTES:
                        ended.complaints += chunk
            try:
                ended.code = process.wait(max(patience, 0.1))
            except subprocess.TimeoutExpired:
                raise self._too_slow(argv[0]) from None

    @contextmanager
    def _started(self, argv: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        """Yields a running command, whose whole process group is gone in the end."""
        program = argv[0]
        path = program if self._bin_directory is None else str(self._bin_directory / program)
        try:
            process = subprocess.Popen(
                [path, *argv[1:]],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise self._not_started(program, error) from error
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
        if error.errno == errno.E2BIG:
            return SlurmRefusedError(f"{program}: the list of jobs is too long for one command")
        if error.errno not in {errno.ENOENT, errno.EACCES, errno.ENOTDIR}:
            return SlurmUnavailableError(f"{program} cannot be started: {error.strerror}")
        where = f"in {self._bin_directory}" if self._bin_directory is not None else "on the PATH"
        return SlurmUnavailableError(
            f"{program} is not to be found {where}: install Slurm's client commands on this host"
            " or name the directory they are in"
        )

    def _too_slow(self, program: str) -> SlurmUnavailableError:
        daemon = "slurmdbd" if program in _ACCOUNTING_COMMANDS else "slurmctld"
        return no_answer(daemon, f"{program} took longer than {self.timeout_seconds:g} s")


def failure(program: str, said: str, code: int) -> SlurmError:
    """Returns the error to raise when a command failed with this output."""
    daemon = daemon_away(program, said)
    if daemon is None:
        return SlurmRefusedError(f"Slurm refused: {_short(program, cause(said, code))}")
    telling = [line for line in said.split("\n") if daemon_away(program, line) == daemon]
    return no_answer(daemon, _short(program, cause("\n".join(telling) or said, code)))


def cause(said: str, code: int) -> str:
    r"""Returns the line in which a command names what was wrong; it may add how to ask for help.

    >>> cause("squeue: unrecognized option '--x'\nTry \"squeue --help\" for more\n", 1)
    "squeue: unrecognized option '--x'"
    """
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    telling = [line for line in lines if _HINT.match(line) is None] or lines
    return telling[0][:LONGEST_CAUSE] if telling else f"exit code {code}"


def daemon_away(program: str, said: str) -> str | None:
    """Names the daemon that does not answer, judging by the output of a command."""
    if _MUNGE.search(said):
        return "munge"
    if _DATABASE.search(said):
        return "slurmdbd's database"
    if _NO_ANSWER.search(said):
        return "slurmdbd" if program in _ACCOUNTING_COMMANDS else "slurmctld"
    return None


def no_answer(daemon: str, detail: str) -> SlurmUnavailableError:
    """Returns the error to raise when a daemon does not answer."""
    return SlurmUnavailableError(f"{daemon} does not answer ({detail}): {_REMEDIES[daemon]}")


def _short(program: str, line: str) -> str:
    own = line.removeprefix(f"{program}: ").removeprefix("error: ")
    return f"{program}: {own}"


def _text(raw: bytes | bytearray) -> str:
    return raw.decode("utf-8", errors="replace")
