"""The adapters to Slurm, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.port import Connection, Slurm
from shapleyprio.slurm.pyslurm.adapter import PyslurmSlurm

DEFAULT_ADAPTER = "command_line"

ADAPTERS: Mapping[str, Callable[[Connection], Slurm]] = {
    DEFAULT_ADAPTER: CommandLineSlurm,
    "pyslurm": PyslurmSlurm,
    "auto": partial(PyslurmSlurm, falls_back=True),
}
"""Name -> adapter."""


def connect(connection: Connection, adapter: str = DEFAULT_ADAPTER) -> Slurm:
    """Returns a cluster, spoken to through an adapter; nothing is asked of Slurm yet.

    Args:
        connection: settings that all adapters share.
        adapter: its name.
    """
    return ADAPTERS[adapter](connection)
