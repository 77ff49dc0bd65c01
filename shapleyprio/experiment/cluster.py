"""Runs cells on many machines through dask.distributed, also started on Slurm itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any  # Dask's packages ship no types

from shapleyprio.experiment.cells import Cell, ExperimentError
from shapleyprio.experiment.running import Finished, Runner, run_cell

SLURM = "slurm"
"""Stands for workers that are started as jobs of Slurm."""

PACKAGES = frozenset({"dask", "dask_jobqueue", "distributed"})

CONNECT_SECONDS = 30

SBATCH = "sbatch"

SLURM_DEFAULTS = {"cores": 1, "memory": "2GB", "processes": 1}
"""Options of a one-worker job where Dask's own configuration (jobqueue.slurm) says nothing."""


def on_dask(address: str, workers: int) -> Runner:
    """Returns a runner on a Dask cluster.

    The workers need this package, and the logs under the same paths.

    Args:
        address: of a scheduler, such as tcp://head:8786; or "slurm", to start one here and its
            workers as jobs of Slurm.
        workers: how many jobs of Slurm to start.

    Raises:
        ExperimentError: (at once) packages are missing; (while running) nobody answers there.
    """
    with _packages_needed():
        distributed = import_module("distributed")
        jobqueue = import_module("dask_jobqueue") if address == SLURM else None

    def runner(cells: Sequence[Cell]) -> Finished:
        if not cells:
            return
        connected = (
            _to(distributed, address)
            if jobqueue is None
            else _on_slurm(distributed, jobqueue, workers)
        )
        with connected as client:
            yield from _run(distributed, client, cells)

    return runner


def _run(distributed: Any, client: Any, cells: Sequence[Cell]) -> Finished:
    futures = client.map(run_cell, cells, pure=False)
    indices = {future.key: index for index, future in enumerate(futures)}
    try:
        for future in distributed.as_completed(futures):
            yield indices[future.key], future.result()
            future.release()
    except distributed.KilledWorker as error:
        raise ExperimentError(
            f"workers died again and again at one cell, perhaps for want of memory: {error}"
        ) from None
    finally:
        client.cancel(futures)


@contextmanager
def _to(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f"no scheduler of Dask's answers at {address} ({error}); give its address, such as "
            "tcp://head:8786"
        ) from None
    with client:
        yield client


@contextmanager
def _on_slurm(distributed: Any, jobqueue: Any, workers: int) -> Iterator[Any]:
    configured = import_module("dask.config").get("jobqueue.slurm")
    unset = {key: value for key, value in SLURM_DEFAULTS.items() if configured.get(key) is None}
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
        raise ExperimentError(f"Dask on Slurm: {SBATCH} cannot be run ({error.strerror})") from None
    if tried.returncode != 0:
        said = " ".join(tried.stderr.split()) or f"exit code {tried.returncode}"
        raise ExperimentError(
            f"Dask on Slurm: a worker's job is refused ({said}); what it asks for stands in Dask's "
            "configuration, under jobqueue.slurm"
        )


@contextmanager
def _packages_needed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise ExperimentError(
            "Dask needs more packages: pip install 'shapleyprio[cluster]'"
        ) from None
