"""From the configuration to the cluster."""

from __future__ import annotations

from shapleyprio.config.model import Config
from shapleyprio.slurm import adapters
from shapleyprio.slurm.port import Connection, Slurm


def connect(config: Config) -> Slurm:
    """Returns the cluster, spoken to as the configuration says; nothing is asked of Slurm yet."""
    connection = Connection(
        weight=config.fairness.weight,
        timeout_seconds=config.slurm.timeout,
        bin_directory=config.slurm.bin_directory,
    )
    return adapters.connect(connection, config.slurm.adapter)
