"""Runs a Python module inside a cluster's accelerated clock.

``python -m shapleyprio.lab.testbed.accelerated MODULE ARGUMENTS...`` is ``python -m MODULE
ARGUMENTS...``, except that ``threading.Event.wait`` (where APScheduler rests between two runs)
follows the accelerated clock. libfaketime covers sleeping, select, poll and asyncio, but not the
sem_clockwait behind Python's locks: that would compare an accelerated deadline with the real
clock and wait far too long.
"""

from __future__ import annotations

import runpy
import sys
import threading
import time

CHECK_SECONDS = 1.0  # of the accelerated clock, from one check of the event to the next


def wait_by_sleeping(event: threading.Event, timeout: float | None = None) -> bool:
    """Waits for the event by short sleeps, which do follow the accelerated clock."""
    if timeout is None:
        return _wait_forever(event)
    deadline = time.monotonic() + timeout
    while not event.is_set() and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, CHECK_SECONDS))
    return event.is_set()


_wait_forever = threading.Event.wait


def main() -> None:
    """Runs the module named on the command line."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m shapleyprio.lab.testbed.accelerated MODULE [ARGUMENT...]")
    threading.Event.wait = wait_by_sleeping  # type: ignore[method-assign, assignment]
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
