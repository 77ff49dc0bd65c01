"""Checks that the pools of the configuration mean this cluster."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from shapleyprio.config import Config
from shapleyprio.slurm.findings import Finding, Severity


def check_pool(config: Config, cluster: str) -> Iterator[Finding]:
    """Yields a finding if there are pools and the cluster is in none."""
    if not config.pools or config.pool_of(cluster) is not None:
        return
    named = [name for pool in config.pools for name in pool.clusters]
    near = get_close_matches(cluster, named, n=1)
    meant = f"; is {near[0]!r} meant to be it?" if near else ""
    yield Finding(
        Severity.WARNING,
        "pool",
        f"this cluster, {cluster!r}, is in none: it goes by its own balances alone{meant}",
        "add its ClusterName to the `clusters` of a [[pool]], unless this is meant",
    )
