"""The configuration: one TOML file, one validated model, and its reference."""

from __future__ import annotations

import os
from pathlib import Path

from shapleyprio.config.consortium import Organization as Organization
from shapleyprio.config.keys import MetricsSection as MetricsSection
from shapleyprio.config.keys import StoreSection as StoreSection
from shapleyprio.config.load import load_config as load_config
from shapleyprio.config.model import Config as Config
from shapleyprio.config.reference import config_reference as config_reference
from shapleyprio.config.segments import weights_of
from shapleyprio.config.values import Address as Address
from shapleyprio.config.values import socket_path as socket_path
from shapleyprio.slurm import adapters
from shapleyprio.slurm.port import Connection, Slurm, SlurmError


def connect(config: Config, cluster: str | None = None) -> Slurm:
    """Returns the cluster, spoken to as the configuration says; nothing is asked of Slurm yet.

    Args:
        config: in force.
        cluster: its name, to count the jobs of each of its pools in that pool's weight; None where
            no accounting is read.

    Raises:
        SlurmError: SLURM_CONF names a file that is not there. Slurm's commands would look for
            their cluster elsewhere for half a minute, and not say why.
    """
    named = os.environ.get("SLURM_CONF")
    if named and not Path(named).exists():
        raise SlurmError(
            f"the environment variable SLURM_CONF names {named}, which does not exist; correct it, "
            "or unset it"
        )
    usual, of_partitions = (
        (config.fairness.weight, {}) if cluster is None else weights_of(config, cluster)
    )
    connection = Connection(
        weight=usual,
        weight_of=of_partitions,
        timeout_seconds=config.slurm.timeout,
        bin_directory=config.slurm.bin_directory,
    )
    return adapters.connect(connection, config.slurm.adapter)
