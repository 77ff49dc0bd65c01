"""Connections to Dask clusters, also to such as are started on Slurm itself."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any  # Dask's packages ship no types

from shapleyprio.replay.errors import DaskError

SLURM = "slurm"
"""Stands for workers that are started as jobs of Slurm."""

PACKAGES = frozenset({"dask", "dask_jobqueue", "distributed"})

CONNECT_SECONDS = 30

SBATCH = "sbatch"

SLURM_DEFAULTS = {"cores": 1, "memory": "2GB", "processes": 1}
"""Options of a one-worker job where Dask's own configuration (jobqueue.slurm) says nothing."""


def check_dask_packages(address: str) -> None:
    """Finds out whether Dask's packages are here.

    Args:
        address: as for `connected`.

    Raises:
        DaskError: one of them is missing.
    """
    try:
        import_module("distributed")
        if address == SLURM:
            import_module("dask_jobqueue")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise DaskError("Dask needs more packages: pip install 'shapleyprio[cluster]'") from None


@contextmanager
def connected(address: str, workers: int) -> Iterator[Any]:
    """Yields a client of a Dask cluster, whose packages must be here.

    Args:
        address: of a scheduler, such as tcp://head:8786; or "slurm", to start one here and its
            workers as jobs of Slurm.
        workers: how many jobs of Slurm to start.

    Raises:
        DaskError: nobody answers there, or Slurm refuses the workers' jobs.
    """
    with _on_slurm(workers) if address == SLURM else _to(address) as client:
        yield client


@contextmanager
def _to(address: str) -> Iterator[Any]:
    distributed = import_module("distributed")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise DaskError(
            f"no Dask scheduler answers at {address} ({error}); give its address, such as "
            "tcp://head:8786"
        ) from None
    with client:
        yield client


@contextmanager
def _on_slurm(workers: int) -> Iterator[Any]:
    distributed, jobqueue = import_module("distributed"), import_module("dask_jobqueue")
    configured = import_module("dask.config").get("jobqueue.slurm")
    # the job's script has Python's path as it stands here
    defaults = {**SLURM_DEFAULTS, "python": shlex.quote(sys.executable)}
    unset = {key: value for key, value in defaults.items() if configured.get(key) is None}
    with jobqueue.SLURMCluster(**unset) as cluster, distributed.Client(cluster) as client:
        _refuse_what_slurm_refuses(cluster.job_script())
        cluster.scale(jobs=workers)
        yield client


def _refuse_what_slurm_refuses(script: str) -> None:
    """Raises if Slurm refuses the workers' jobs: Dask would wait forever for their workers."""
    try:
        tried = subprocess.run(
            [SBATCH, "--test-only"], input=script, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise DaskError(f"Dask on Slurm: {SBATCH} cannot be run ({error.strerror})") from None
    if tried.returncode != 0:
        said = " ".join(tried.stderr.split()) or f"exit code {tried.returncode}"
        raise DaskError(
            f"Dask on Slurm: a worker's job is refused ({said}); its request is in Dask's "
            "configuration, under jobqueue.slurm"
        )
