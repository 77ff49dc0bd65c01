"""The demo on a real Slurm: private, on loopback, its clock accelerated."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from shapleyprio.demo.consortium import CLUSTER, COMMAND_TIMEOUT_SECONDS, CPUS_PER_NODE, MEMBERS
from shapleyprio.demo.stage import DemoError, last_words
from shapleyprio.demo.workload import Submission
from shapleyprio.slurm.command_line import CommandLineSlurm
from shapleyprio.testbed.cluster import PrivateSlurm
from shapleyprio.testbed.configuration import ClusterSpec
from shapleyprio.testbed.packages import ensure_installed
from shapleyprio.testbed.processes import processes_of

STEP_SECONDS = 0.2
SUBMISSIONS_A_STEP = 8
"""So that a burst of submissions does not keep the screen from moving."""

LAST_CYCLE_SECONDS = 60
KILL_SECONDS = 5


class RealStage:
    """A private Slurm, the daemon beside it as a process of its own, and jobs that sleep.

    Args:
        config_file: its directory holds the whole state.
        submissions: to come, perhaps without end.
        speed: cluster seconds per real second.
        log: file for the daemon's log.
        say: told what is being done.

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
        self._daemon: subprocess.Popen[bytes] | None = None
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
            self._daemon = self._cluster.start_python(
                "shapleyprio", "daemon", "--config", str(config_file), log=log
            )
            self.began = self._cluster.now()
        except BaseException:
            self.stop()
            raise
        self.slurm = CommandLineSlurm(
            environment=self._cluster.environment, timeout_seconds=COMMAND_TIMEOUT_SECONDS
        )

    def step(self) -> int:
        """Submits what is due and lets a moment pass."""
        if self._daemon is None or self._daemon.poll() is not None:
            raise DemoError(f"the daemon has ended: {last_words(self.log)}")
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
        self._daemon.terminate()
        try:
            code = self._daemon.wait(LAST_CYCLE_SECONDS)
        except subprocess.TimeoutExpired:
            raise DemoError(f"the daemon does not stop: {last_words(self.log)}") from None
        if code != 0:
            raise DemoError(f"the daemon ended with exit code {code}: {last_words(self.log)}")

    def stop(self) -> list[str]:
        """Ends the daemon and the cluster."""
        if self._daemon is not None and self._daemon.poll() is None:
            self._daemon.kill()
            self._daemon.wait()
        self._cluster.stop()
        # an interrupted command of Slurm's may still be asking its controller
        for process in processes_of(self._cluster.directory):
            with suppress(psutil.Error):
                process.kill()
                process.wait(KILL_SECONDS)
        return [str(process) for process in processes_of(self._cluster.directory)]
