"""The process that outlives everything else of a private cluster.

It prints a line when it is there, and waits until its standard input closes: when the cluster
stops, or when the process that started the cluster is gone, however it ended. Then it kills what
is left. Until then it ends steps that do not end by themselves.
"""

from __future__ import annotations

import select
import sys
from pathlib import Path

import psutil

from shapleyprio.lab.testbed.processes import end_stuck_steps, kill_leftovers

STEPS_SECONDS = 10.0  # from one look at the steps to the next, on the machine's clock


def main() -> None:
    """Guards the directory named on the command line."""
    print("guarding", flush=True)
    directory = Path(sys.argv[1])
    suspects: frozenset[psutil.Process] = frozenset()
    while not select.select([sys.stdin], [], [], STEPS_SECONDS)[0]:
        suspects = end_stuck_steps(directory, suspects)
    kill_leftovers(directory)


if __name__ == "__main__":
    main()
