"""Commands of shapleyprio as processes of their own that need not import it first.

Importing takes most of a short command's time. So a server imports once, and forks for each
command; arguments, environment, output and exit code are the command's own.
"""

from __future__ import annotations

import multiprocessing
import os
import pwd
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing import forkserver
from multiprocessing.forkserver import ForkServer
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from rich.cells import cell_len

from shapleyprio.cli import main
from shapleyprio.common import shipped
from shapleyprio.slurm.command_line import commands

USED = (
    *("check", "daemon", "db", "explain", "history", "init", "ownership", "rollback", "status"),
    "options.refusals",
)

LAZY = (
    "alembic.command",
    "alembic.config",
    "apscheduler.triggers.date",
    "apscheduler.triggers.interval",
    "encodings.ascii",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.utf_8_sig",
    "rich._emoji_codes",
    "sqlalchemy.dialects.sqlite",
    "sqlite3",
    "tornado.platform.asyncio",
)
"""What is imported at its first use only, when another user may not be able to."""

DRIVERS = (
    "psycopg.types.hstore",
    "psycopg.types.json",
    "psycopg.types.multirange",
    "psycopg.types.range",
    "pymysql",
    "sqlalchemy.dialects.mysql",
    "sqlalchemy.dialects.postgresql",
)
"""The same, where servers' drivers are installed."""


CLOCK = ("LD_PRELOAD", "SHAPLEYPRIO_CLOCK")
"""What puts a process on a clock of its own when it starts."""


class Readable(NamedTuple):
    """What a command of another user starts and reads while it runs.

    Attributes:
        alarmed: what stands before a Slurm command with a time limit of its own.
        shipped: folder with the files that come with the program, and what pip says of it.
    """

    alarmed: Sequence[str] = commands.ALARMED
    shipped: Path = shipped.PACKAGE


OURS = Readable()

_FORKING = multiprocessing.get_context("forkserver")

for _name in USED:
    import_module(f"shapleyprio.cli.{_name}")
for _name in LAZY:
    import_module(_name)
for _name in DRIVERS:
    with suppress(ImportError):
        import_module(_name)
cell_len("…")  # how wide characters are stands in a module of its own


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout: float,
    user: str | None = None,
    readable: Readable = OURS,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; it has nothing to read.

    Args:
        arguments: of shapleyprio.
        environment: the complete one.
        timeout: seconds after which it is killed.
        user: login name, as whom it is run; our own if left out. A Python or checkout that only we
            may read is no hindrance: what is imported is in memory by then.
        readable: for that user.
    """
    with TemporaryDirectory() as folder:
        printed = Path(folder, "stdout"), Path(folder, "stderr")
        process = start(arguments, environment, *printed, user=user, readable=readable)
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(arguments), timeout)
        stdout, stderr = (file.read_text() for file in printed)
    return subprocess.CompletedProcess(list(arguments), process.exitcode, stdout, stderr)


def start(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    *,
    user: str | None = None,
    readable: Readable = OURS,
) -> BaseProcess:
    """Start a command; files take what it prints."""
    process = _FORKING.Process(
        target=_command, args=(arguments, dict(environment), stdout, stderr, user, readable)
    )
    clock = frozenset((name, environment[name]) for name in CLOCK if name in environment)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forkserver, "connect_to_new_process", _server(clock).connect_to_new_process)
        process.start()
    return process


@cache
def _server(clock: frozenset[tuple[str, str]]) -> ForkServer:
    """Start the server of all commands on a clock, whose library cannot be loaded later."""
    server = ForkServer()
    server.set_forkserver_preload(["pytest", __name__])  # pytest is __main__ there, too
    with pytest.MonkeyPatch.context() as patch:
        for name, value in clock:
            patch.setenv(name, value)
        server.ensure_running()
    return server


def _command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    user: str | None,
    readable: Readable,
) -> None:
    for stream, file in ((1, stdout), (2, stderr)):
        with file.open("wb") as opened:
            os.dup2(opened.fileno(), stream)
    os.environ.clear()
    os.environ.update(environment)
    if user is not None:
        account = pwd.getpwnam(user)
        os.chdir("/")
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    if readable != OURS:
        commands.ALARMED, shipped.PACKAGE = readable
        sys.path.append(str(readable.shipped))
    sys.argv = ["shapleyprio", *arguments]
    main()
