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
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from shapleyprio.cli import main

USED = ("check", "daemon", "db", "explain", "history", "init", "ownership", "rollback", "status")

LAZY = (
    "encodings.ascii",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.utf_8_sig",
    "sqlalchemy.dialects.sqlite",
    "sqlite3",
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

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["pytest", __name__])  # pytest is __main__ there, too

for _name in USED:
    import_module(f"shapleyprio.cli.{_name}")
for _name in LAZY:
    import_module(_name)
for _name in DRIVERS:
    with suppress(ImportError):
        import_module(_name)


def run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout: float,
    user: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; it has nothing to read.

    Args:
        arguments: of shapleyprio.
        environment: the complete one.
        timeout: seconds after which it is killed.
        user: login name, as whom it is run; our own if left out. A Python that only we may read is
            no hindrance: it is in memory by then.
    """
    with TemporaryDirectory() as folder:
        printed = Path(folder, "stdout"), Path(folder, "stderr")
        process = start(arguments, environment, *printed, user=user)
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
) -> BaseProcess:
    """Start a command; files take what it prints."""
    process = _FORKING.Process(
        target=_command, args=(arguments, dict(environment), stdout, stderr, user)
    )
    process.start()
    return process


def _command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    user: str | None,
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
    sys.argv = ["shapleyprio", *arguments]
    main()
