"""The guard of a private cluster, as its owner sees it; the process itself is in `guard`."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from shapleyprio.common.workers import PYTHON
from shapleyprio.lab.testbed.errors import SlurmUnavailableHere, TestbedError
from shapleyprio.lab.testbed.packages import faketime_library, program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLEARING_SECONDS = 60  # real ones, on a busy machine with thousands of job steps
ATTEMPTS = 5
"""To start a guard, whose clock may bear the name of one that was left behind."""


class Guard:
    """Clears up after the cluster, whatever becomes of this process, and owns its clock.

    Args:
        directory: the cluster's, which exists.
        base: environment for the daemons.
        speed: cluster seconds per real second.
        epoch: second at which an accelerated clock begins; None for now.

    Attributes:
        clock: what the accelerated clock adds to the environment; empty if it is the machine's.
    """

    def __init__(
        self, directory: Path, base: Mapping[str, str], *, speed: int, epoch: int | None
    ) -> None:
        argv = [*PYTHON, "-m", "shapleyprio.lab.testbed.guard", str(directory)]
        self.clock: dict[str, str] = {}
        if speed > 1:
            begin = f"@{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(epoch))} x{speed}"
            self.clock = {**_faked(begin), "FAKETIME_DONT_RESET": "1"}
            # the wrapper owns the shared memory, env is the first to read the clock
            argv = [program("faketime"), "-m", "-f", begin, "env", "-u", "LD_PRELOAD", *argv]
        self._start(argv, {**base, "FAKETIME_DONT_RESET": "1"}, directory)
        if self.clock:
            self.clock["FAKETIME_SHARED"] = self._shared

    def _start(self, argv: Sequence[str], environment: Mapping[str, str], directory: Path) -> None:
        log = directory / "log" / "guard.output"
        for _ in range(ATTEMPTS):
            with log.open("wb") as errors:
                self._process = subprocess.Popen(
                    argv,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    start_new_session=True,
                )
            answer = self._process.stdout.readline() if self._process.stdout is not None else ""
            if answer:
                self._shared = answer.strip()
                return
            self._process.communicate()
            complaint = log.read_text(errors="replace")
            # a clock is named after its process; one of that number was killed and left its own
            if "File exists" not in complaint:
                break
        raise TestbedError(f"the guard did not start: {complaint}")

    def end(self) -> None:
        """Makes it clear up, which it does when its input closes, and removes the clock."""
        try:
            self._process.communicate(timeout=CLEARING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        # the clock's shared memory is still there if its owner was killed before it could clear up
        for name in self._shared.split() if self.clock else ():
            for file in (name.lstrip("/"), f"sem.{name.lstrip('/')}"):
                Path("/dev/shm", file).unlink(missing_ok=True)  # noqa: S108 - exactly this file


def clock_ahead(seconds: int) -> dict[str, str]:
    """Returns the environment of a process whose clock is ahead; a monotonic one is as it is."""
    return {**_faked(f"+{seconds}s"), "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def _faked(time: str) -> dict[str, str]:
    library = faketime_library()
    if library is None:
        raise SlurmUnavailableHere("a clock of its own needs the package libfaketime")
    return {"LD_PRELOAD": str(library), "FAKETIME": time}
