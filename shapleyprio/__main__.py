"""Starts the program, as a command and as ``python -m shapleyprio``."""

from __future__ import annotations

import gc
import os
import sys

DAEMON = "daemon"


def main() -> None:
    """Runs the command line; for root, and as the daemon, isolated.

    Who is served by others must not import what these have put into the current directory, or
    into a folder that PYTHONPATH names.
    """
    if not sys.flags.isolated and (os.geteuid() == 0 or sys.argv[1:2] == [DAEMON]):
        program = [sys.executable, "-I", "-m", "shapleyprio"]
        os.execv(program[0], [*program, *sys.argv[1:]])  # noqa: S606 - no shell, our own words
    gc.disable()  # until the command is imported: of all that, nothing is garbage
    from shapleyprio.cli import main as command

    command(prog_name="shapleyprio")


if __name__ == "__main__":
    main()
