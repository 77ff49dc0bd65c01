"""Processes that a terminal's Ctrl-C does not reach, with their output in a file."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def start_detached(
    argv: Sequence[str], *, environment: Mapping[str, str], log: Path, directory: Path | None = None
) -> subprocess.Popen[bytes]:
    """Starts a process in a session of its own.

    Args:
        argv: command and arguments.
        environment: the complete one.
        log: file to which its output is appended.
        directory: that it runs in; None: ours.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            argv,
            env=environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def wait_or_kill(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Waits for a process to end, and kills it if it takes longer."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_words(log: Path) -> str:
    """Returns the end of a log, for messages."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return "\n".join(["its log ends with", *lines[-8:]] if lines else ["its log is empty"])
