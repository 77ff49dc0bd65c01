"""Runs cells on many machines through dask.distributed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any  # Dask's packages ship no types

from shapleyprio.lab.experiment.cells import Cell, ExperimentError
from shapleyprio.lab.experiment.running import Finished, Runner, run_cell
from shapleyprio.replay.policies.dask_cluster import check_dask_packages, connected


def on_dask(address: str, workers: int) -> Runner:
    """Returns a runner on a Dask cluster.

    The workers need this package, and the logs under the same paths.

    Args:
        address: as for `shapleyprio.replay.policies.dask_cluster.connected`.
        workers: how many jobs of Slurm to start.

    Raises:
        DaskError: (at once) packages are missing; (while running) nobody answers there.
        ExperimentError: (while running) workers die.
    """
    check_dask_packages(address)

    def runner(cells: Sequence[Cell]) -> Finished:
        if not cells:
            return
        with connected(address, workers) as client:
            yield from _run(client, cells)

    return runner


def _run(client: Any, cells: Sequence[Cell]) -> Finished:
    distributed = import_module("distributed")
    futures = client.map(run_cell, cells, pure=False)
    indices = {future.key: index for index, future in enumerate(futures)}
    try:
        for future in distributed.as_completed(futures):
            yield indices[future.key], future.result()
            future.release()
    except distributed.KilledWorker as error:
        raise ExperimentError(
            f"workers died repeatedly at one cell, perhaps out of memory: {error}"
        ) from None
    finally:
        client.cancel(futures)
