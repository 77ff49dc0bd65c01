"""Slurm's Lua script on a private cluster, as an administrator installs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapleyprio.common import shipped

if TYPE_CHECKING:
    from pathlib import Path

    from shapleyprio.lab.testbed.cluster import PrivateSlurm

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
