"""The demo on a real Slurm: private, on loopback, its clock accelerated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from shapleyprio.lab.demo.consortium import (
    CLUSTER,
    COMMAND_TIMEOUT_SECONDS,
    CPUS_PER_NODE,
    MEMBERS,
    Submission,
)
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.lab.testbed.machine import ensure_installed
from shapleyprio.lab.testbed.processes import end_clients
from shapleyprio.lab.testbed.steering import SteeringDaemon
from shapleyprio.slurm.adapters import connect
from shapleyprio.slurm.port import Connection

STEP_SECONDS = 0.2
SUBMISSIONS_A_STEP = 8
"""So that a burst of submissions does not keep the screen from moving."""


class RealStage:
    """A private Slurm, the daemon beside it as a process of its own, and jobs that sleep.

    Args:
        config_file: its directory holds the whole state.
        submissions: to come, perhaps without end.
        speed: cluster seconds per real second.
        log: file for the daemon's log.
        say: called with lines about what is being done.

    Raises:
        SlurmUnavailableHere: this machine cannot have a private Slurm.
        TestbedError: it can, but something did not work.
    """

    def __init__(
        self,
        config_file: Path,
        submissions: Iterable[Submission],
        *,
        speed: int,
        log: Path,
        say: Callable[[str], None],
    ) -> None:
        ensure_installed(say)
        self.submitted: dict[int, Submission] = {}
        self._waiting = iter(submissions)
        self._next = next(self._waiting, None)
        self.log = log
        self._daemon: SteeringDaemon | None = None
        spec = ClusterSpec(
            name=CLUSTER,
            partitions={member.name: member.nodes for member in MEMBERS},
            cpus_per_node=CPUS_PER_NODE,
            speed=speed,
        )
        self._cluster = PrivateSlurm(config_file.parent, spec)
        began = time.monotonic()
        say(
            f"booting munge, MariaDB, slurmdbd, slurmctld and {len(spec.nodes)} slurmd"
            f" in {self._cluster.directory}"
        )
        try:
            self._cluster.start()
            self._cluster.add_accounts({member.name: None for member in MEMBERS})
            version = self._cluster.run("sinfo", "--version").strip()
            say(f"{version} is up after {time.monotonic() - began:.1f} s; starting the daemon")
            self._daemon = SteeringDaemon(self._cluster, config_file, log)
            self.began = self._cluster.now()
        except BaseException:
            self.stop()
            raise
        self.slurm = connect(
            Connection(
                environment=self._cluster.environment, timeout_seconds=COMMAND_TIMEOUT_SECONDS
            )
        )

    def step(self) -> int:
        """Submits what is due and waits a moment."""
        assert self._daemon is not None, "it is started with the stage"
        self._daemon.check()
        now = self._cluster.now() - self.began
        for _ in range(SUBMISSIONS_A_STEP):
            if self._next is None or self._next.second > now:
                break
            job, self._next = self._next, next(self._waiting, None)
            job_id = self._cluster.submit(job.account, job.seconds, processors=job.processors)
            self.submitted[job_id] = job
        time.sleep(STEP_SECONDS)
        return self._cluster.now() - self.began

    def stop_daemon(self) -> None:
        """Ends the daemon as systemd would."""
        assert self._daemon is not None, "it is started with the stage"
        self._daemon.end()

    def stop(self) -> list[str]:
        """Ends the daemon and the cluster."""
        if self._daemon is not None:
            self._daemon.kill()
        self._cluster.stop()
        return end_clients(self._cluster.directory)
