"""The adapters to Slurm, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shapleyprio.slurm.command_line import CommandLineSlurm
from shapleyprio.slurm.port import Connection, Slurm

DEFAULT_ADAPTER = "command_line"

ADAPTERS: Mapping[str, Callable[[Connection], Slurm]] = {DEFAULT_ADAPTER: CommandLineSlurm}
"""Name -> adapter."""


def connect(connection: Connection, adapter: str = DEFAULT_ADAPTER) -> Slurm:
    """Returns a cluster, spoken to through an adapter; nothing is asked of Slurm yet.

    Args:
        connection: settings that all adapters share.
        adapter: its name.
    """
    return ADAPTERS[adapter](connection)
