"""The guard of a private cluster, as its owner sees it; the process itself is in `guard`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from shapleyprio.common.workers import PYTHON
from shapleyprio.lab.testbed.errors import TestbedError

if TYPE_CHECKING:
    from collections.abc import Mapping

CLEARING_SECONDS = 60  # real ones, on a busy machine with thousands of job steps


class Guard:
    """Clears up after the cluster, whatever becomes of this process.

    Args:
        directory: the cluster's, which exists.
        environment: of the guard.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        log = directory / "log" / "guard.output"
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*PYTHON, "-m", "shapleyprio.lab.testbed.guard", str(directory)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        if self._process.stdout is None or not self._process.stdout.readline():
            self._process.communicate()
            raise TestbedError(f"the guard did not start: {log.read_text(errors='replace')}")

    def end(self) -> None:
        """Makes it clear up, which it does when its input closes."""
        try:
            self._process.communicate(timeout=CLEARING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
