"""Processes of other users, and processes that a test has left behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

NOBODY = 65534
"""User and group without any rights, on Debian."""

DAEMON = 1
"""User and group of the name daemon on Debian, whose jobs Slurm takes: since 26.05 not nobody's."""


def as_nobody(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command as nobody; only root can."""
    return as_user(NOBODY, environment, *words)


def as_user(
    user: int, environment: Mapping[str, str], *words: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command as the user and the group of that number; only root can."""
    return subprocess.run(
        words,
        env=environment,
        cwd="/",
        user=user,
        group=user,
        extra_groups=[],
        check=False,
        capture_output=True,
        text=True,
    )


def processes_mentioning(directory: Path) -> list[str]:
    """Every process with the directory in its environment, arguments or open files."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.environ().values(), *process.cmdline()]
            words += [str(file.path) for file in process.open_files()]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(directory) in word for word in words):
            found.append(f"{process.pid} {process.name()}")
    return found


def has_ended(process: psutil.Process) -> bool:
    """Whether a process does nothing more, though its parent may not have heard of its end.

    That may be frozen, or the first process of a container, which need not wait for any.
    """
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
