"""Makes the libraries in C with the wheel, and with an editable installation.

They are that of shapleyprio/replay/native, and the clock of private clusters.

The compiler is that of $CC, else cc; $CFLAGS and $LDFLAGS are added to our own options.
`python hatch_build.py` makes the libraries alone.
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

PACKAGE = Path(__file__).parent / "shapleyprio"
NATIVE = PACKAGE / "replay" / "native"
PRELOAD = PACKAGE / "lab" / "testbed" / "preload.c"

LIBRARIES = {
    NATIVE / "library.so": sorted(NATIVE.glob("*.c")),
    PRELOAD.with_suffix(".so"): [PRELOAD],
}
"""Library -> its files in C."""

OPTIONS = (
    *("-std=c11", "-O3", "-Wall", "-Wextra", "-fPIC", "-shared", "-s"),
    "-fvisibility=hidden",  # but what is EXPORTED (native.h)
    "-fwrapv",  # sums wrap as numpy's do
    "-ffp-contract=off",  # the same digits on each kind of processor
)


def build() -> None:
    """Compiles all files in C; a process that has an old library loaded keeps it.

    Raises:
        SystemExit: there is no compiler, or it refuses.
    """
    compiler = shlex.split(os.environ.get("CC") or "cc")
    flags = [shlex.split(os.environ.get(name, "")) for name in ("CFLAGS", "LDFLAGS")]
    for library, files in LIBRARIES.items():
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            made = Path(folder, library.name)
            command = [*compiler, *OPTIONS, *flags[0], "-o", str(made), *map(str, files)]
            try:
                done = subprocess.run([*command, *flags[1], "-lm", "-ldl"], check=False)
            except FileNotFoundError:
                sys.exit(
                    f"{compiler[0]}: no such C compiler; on Debian: apt-get install gcc libc6-dev"
                )
            if done.returncode:
                sys.exit(f"{compiler[0]} did not compile {library.parent}; its messages are above")
            made.replace(library)


class NativeLibrary(BuildHookInterface[Any]):
    """What hatchling calls before it packs a wheel; an editable one only refers to the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Makes the libraries, and a wheel for this machine's kind of processor."""
        build()
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data.update(pure_python=False, tag=f"py3-none-{platform}")
        root = Path(__file__).parent
        build_data["artifacts"] += [str(library.relative_to(root)) for library in LIBRARIES]


if __name__ == "__main__":
    build()
