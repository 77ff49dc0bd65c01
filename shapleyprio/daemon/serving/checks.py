"""Holds the configuration against the cluster from time to time, beside the cycles."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from threading import Event, Thread
from typing import Any

import structlog

from shapleyprio.slurm.findings import Finding

CHECK_SECONDS = 600
"""From one check to the next: what it finds is an admin's to mend, not a matter of seconds."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Checked:
    """What the last check found.

    Attributes:
        at: when, seconds since the epoch.
        findings: the worst first; empty if all is well.
    """

    at: int
    findings: Sequence[Finding]

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {"at": self.at, "findings": [asdict(finding) for finding in self.findings]}


class Checks:
    """Runs checks on a thread that nothing waits for: a Slurm that hangs delays no cycle.

    Args:
        check: the current configuration against the live cluster.
        clock: seconds since the epoch.
    """

    def __init__(
        self, check: Callable[[], Sequence[Finding]], clock: Callable[[], float] = time.time
    ) -> None:
        self._check = check
        self._clock = clock
        self._due = Event()
        self._closed = False
        self.last: Checked | None = None

    def start(self) -> None:
        """Checks now, and then again and again."""
        Thread(target=self._run, name="check", daemon=True).start()

    def again(self) -> None:
        """Checks at once: the configuration has changed."""
        self._due.set()

    def close(self) -> None:
        """Ends the thread; a check that runs is not waited for."""
        self._closed = True
        self._due.set()

    def once(self) -> None:
        """Checks once. What fails is logged; the findings before are then out of date."""
        try:
            self.last = Checked(int(self._clock()), tuple(self._check()))
        except Exception:
            log.exception("check failed")
            self.last = None

    def _run(self) -> None:
        while not self._closed:
            self._due.clear()
            self.once()
            self._due.wait(CHECK_SECONDS)
