"""Runs a file of Python, and prints its peak memory in megabytes as the last line.

``python -P peak.py FILE ARGUMENT...`` needs nothing but Python, so that any one can run it. What
the system says of an ended process may be the peak of the one that started it.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def peak_megabytes() -> float:
    """Returns the peak memory of this program."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kibibytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kibibytes) * 1024 / 1e6


def main(file: str, *arguments: str) -> None:
    """Runs the file."""
    sys.argv = [file, *arguments]
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    print(peak_megabytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
