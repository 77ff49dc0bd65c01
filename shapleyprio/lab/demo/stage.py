"""The stage of the demo: a real private Slurm, or the simulated one."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from shapleyprio.lab.demo.workload import Submission
from shapleyprio.slurm.port import Slurm


class DemoError(Exception):
    """Something of the demo did not work as it must; the message says what."""


class Stage(Protocol):
    """A booted cluster on which the daemon steers and the workload arrives.

    Attributes:
        began: the cluster's clock when the first job was submitted.
        submitted: job id -> what was submitted so far.
        log: file of the daemon's log.
    """

    began: int
    log: Path
    submitted: dict[int, Submission]

    @property
    def slurm(self) -> Slurm:
        """The cluster, to put the priorities back."""

    def step(self) -> int:
        """Advances by a little time; returns the seconds since the start.

        Raises:
            TestbedError: the daemon has ended.
        """

    def stop_daemon(self) -> None:
        """Ends the daemon after its running cycle.

        Raises:
            TestbedError: it did not end well.
        """

    def stop(self) -> list[str]:
        """Ends everything, in whatever state it is; returns the processes left behind."""
