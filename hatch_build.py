"""Makes the library of shapleyprio/replay/native with the wheel, and with an editable installation.

The compiler is that of $CC, else cc; $CFLAGS and $LDFLAGS are added to our own options.
`python hatch_build.py` makes the library alone.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path(__file__).parent / "shapleyprio" / "replay" / "native"

OPTIONS = (
    *("-std=c11", "-O3", "-Wall", "-Wextra", "-fPIC", "-shared", "-s"),
    "-fvisibility=hidden",  # but what is EXPORTED (native.h)
    "-fwrapv",  # sums wrap as numpy's do
    "-ffp-contract=off",  # the same digits on each kind of processor
)


def build() -> None:
    """Compiles all files in C; a process that has the old library loaded keeps it.

    Raises:
        SystemExit: there is no compiler, or it refuses.
    """
    compiler = shlex.split(os.environ.get("CC") or "cc")
    flags = [shlex.split(os.environ.get(name, "")) for name in ("CFLAGS", "LDFLAGS")]
    with tempfile.TemporaryDirectory(dir=NATIVE) as folder:
        library = Path(folder, "library.so")
        files = [str(file) for file in (library, *sorted(NATIVE.glob("*.c")))]
        command = [*compiler, *OPTIONS, *flags[0], "-o", *files, *flags[1], "-lm"]
        try:
            done = subprocess.run(command, check=False)
        except FileNotFoundError:
            sys.exit(f"{compiler[0]}: no such C compiler; on Debian: apt-get install gcc libc6-dev")
        if done.returncode:
            sys.exit(f"{compiler[0]} did not compile {NATIVE}; its messages are above")
        library.replace(NATIVE / library.name)


class NativeLibrary(BuildHookInterface[Any]):
    """What hatchling calls before it packs a wheel; an editable one only refers to the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Makes the library, and a wheel for this machine's kind of processor."""
        build()
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data.update(pure_python=False, tag=f"py3-none-{platform}")
        build_data["artifacts"].append("shapleyprio/replay/native/library.so")


if __name__ == "__main__":
    build()
