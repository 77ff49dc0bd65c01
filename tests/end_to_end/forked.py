"""Commands of shapleyprio as processes of their own that need not import it first.

Importing takes most of a short command's time. So a server imports once, and forks for each
command; arguments, environment, output and exit code are the command's own.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from shapleyprio.cli import main

USED = ("check", "daemon", "db", "explain", "history", "init", "rollback", "status")

_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(["pytest", __name__])  # pytest is __main__ there, too

for _name in USED:
    import_module(f"shapleyprio.cli.{_name}")


def run(
    arguments: Sequence[str], environment: Mapping[str, str], *, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; it has nothing to read.

    Args:
        arguments: of shapleyprio.
        environment: the complete one.
        timeout: seconds after which it is killed.
    """
    with TemporaryDirectory() as folder:
        printed = Path(folder, "stdout"), Path(folder, "stderr")
        process = _FORKING.Process(target=_command, args=(arguments, dict(environment), *printed))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(arguments), timeout)
        stdout, stderr = (file.read_text() for file in printed)
    return subprocess.CompletedProcess(list(arguments), process.exitcode, stdout, stderr)


def _command(
    arguments: Sequence[str], environment: Mapping[str, str], stdout: Path, stderr: Path
) -> None:
    for stream, file in ((1, stdout), (2, stderr)):
        with file.open("wb") as opened:
            os.dup2(opened.fileno(), stream)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["shapleyprio", *arguments]
    main()
