"""Becomes a command that the kernel ends in time, whatever has become of the daemon by then.

``python -I -S alarmed.py SECOND COMMAND...``: the second is one of the monotonic clock, which all
processes of a host share. The alarm goes off even if daemon and command are frozen then: the
command does nothing more when they go on.
"""

from __future__ import annotations

import os
import signal
import sys
import time

LEAST_SECONDS = 0.001


def main() -> None:
    """Sets the alarm, which outlives the change of program."""
    second, *command = sys.argv[1:]
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, max(float(second) - time.monotonic(), LEAST_SECONDS))
    try:
        os.execvp(command[0], command)  # noqa: S606 - it becomes that program
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
