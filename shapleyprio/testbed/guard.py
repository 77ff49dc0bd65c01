"""The process that outlives everything else of a private cluster.

It prints the name of the shared memory of the accelerated clock (or an empty line), which lives
as long as the guard, and waits until its standard input closes: when the cluster stops, or when
the process that started the cluster is gone, however it ended. Then it kills what is left.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from shapleyprio.testbed.processes import kill_leftovers


def main() -> None:
    """Guards the directory named on the command line."""
    print(os.environ.get("FAKETIME_SHARED", ""), flush=True)
    sys.stdin.read()
    kill_leftovers(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
