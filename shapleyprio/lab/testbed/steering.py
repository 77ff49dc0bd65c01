"""What we put beside a private Slurm: our daemon, on its clock, and its Lua script."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Self

from shapleyprio.common import shipped
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.detached import last_words
from shapleyprio.lab.testbed.machine import TestbedError

LAST_CYCLE_SECONDS = 60  # real ones


class SteeringDaemon:
    """The running daemon, killed at the end of its context if it still runs.

    Args:
        cluster: that it steers.
        config_file: its configuration.
        log: file for what it prints.
    """

    def __init__(self, cluster: PrivateSlurm, config_file: Path, log: Path) -> None:
        self._log = log
        self._process = cluster.start_python(
            "shapleyprio", "daemon", "--config", str(config_file), log=log
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.kill()

    def check(self) -> None:
        """Raises TestbedError if it has ended."""
        if self._process.poll() is not None:
            raise TestbedError(f"the daemon has ended: {last_words(self._log)}")

    def end(self) -> None:
        """Ends it after its running cycle, as systemd would.

        Raises:
            TestbedError: it did not end well.
        """
        self._process.terminate()
        try:
            code = self._process.wait(LAST_CYCLE_SECONDS)
        except subprocess.TimeoutExpired:
            raise TestbedError(f"the daemon does not stop: {last_words(self._log)}") from None
        if code != 0:
            raise TestbedError(f"the daemon ended with exit code {code}: {last_words(self._log)}")

    def kill(self) -> None:
        """Ends it at once, if it still runs."""
        self._process.kill()
        self._process.wait()


SCRIPT = "job_submit.lua"
MODULE = "shapleyprio_points.lua"
INSTALLED_TABLE = "/var/spool/shapleyprio/points"


def give_points_at_submission(cluster: PrivateSlurm, table: Path) -> None:
    """Lets new jobs have their points from a table; slurmctld is restarted for it.

    Args:
        cluster: running.
        table: that the daemon will write.
    """
    folder = cluster.paths.slurm_conf.parent
    for name in (SCRIPT, MODULE):
        text = shipped.find(f"slurm_conf/{name}").read_text(encoding="utf-8")
        (folder / name).write_text(text.replace(INSTALLED_TABLE, str(table)), encoding="utf-8")
    with cluster.paths.slurm_conf.open("a", encoding="utf-8") as file:
        file.write("JobSubmitPlugins=lua\n")
    cluster.restart("slurmctld")
