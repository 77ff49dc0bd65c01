"""The directory of a private Slurm, with the files that its daemons read."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from shapleyprio.lab.testbed.configuration import (
    ClusterPaths,
    ClusterSpec,
    cgroup_conf,
    gpus_in,
    gres_conf,
    slurm_conf,
    slurmdbd_conf,
    steps_script,
)
from shapleyprio.lab.testbed.packages import program, slurm_release

if TYPE_CHECKING:
    from pathlib import Path


def write_files(spec: ClusterSpec, paths: ClusterPaths) -> None:
    """Makes the folders, and writes configuration and munge's key; an old key stays."""
    for folder in ("", "etc", "run", "log", "state", "spool"):
        (paths.directory / folder).mkdir(parents=True, exist_ok=True)
    paths.directory.chmod(0o755)
    _write(paths.slurm_conf, slurm_conf(spec, paths).encode(), 0o644)
    _write(paths.slurmdbd_conf, slurmdbd_conf(spec, paths).encode(), 0o600)
    if spec.gres:
        _write(paths.slurm_conf.with_name("gres.conf"), gres_conf(spec, paths).encode(), 0o644)
        paths.devices.mkdir(exist_ok=True)
        most = max(sum(n for _, n in gpus_in(gpus)) for gpus in spec.gres.values())
        for number in range(most):
            (paths.devices / str(number)).touch()
    cgroups = cgroup_conf(slurm_release())
    _write(paths.slurm_conf.with_name("cgroup.conf"), cgroups.encode(), 0o644)
    _write(paths.steps, steps_script(program("slurmstepd")).encode(), 0o755)
    if not paths.munge_key.exists():
        _write(paths.munge_key, secrets.token_bytes(128), 0o600)


def _write(path: Path, content: bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode)
    path.write_bytes(content)
