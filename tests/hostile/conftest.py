"""A site on real sockets, in front of a consortium's store."""

from __future__ import annotations

from tests.daemon.conftest import service, slurm, store
from tests.daemon.serving.conftest import opened, served, steered

__all__ = [
    "opened",
    "served",
    "service",
    "slurm",
    "steered",
    "store",
]
