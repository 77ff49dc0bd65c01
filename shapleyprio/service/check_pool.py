"""Checks that the pools of the configuration mean this cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from shapleyprio.config import Config
from shapleyprio.service.pool_status import horizons_in_words, other_horizons
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.store import Store, StoreError


def check_pool(config: Config, cluster: str) -> Iterator[Finding]:
    """Yields a finding if there are pools and the cluster is in none.

    Likewise if other clusters of its pool have another horizon, as far as the store can be read.
    """
    pool = config.pool_of(cluster)
    if pool is not None:
        yield from _horizons(config, cluster, pool.clusters)
    if not config.pools or pool is not None:
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


def _horizons(config: Config, cluster: str, clusters: Collection[str]) -> Iterator[Finding]:
    ours = config.fairness.horizon
    try:
        store = Store.open_existing(config.store.url)
        if store is None:
            return
        with store, store.cluster(cluster).reading() as view:
            others = other_horizons(view, set(clusters) - {cluster}, ours)
    except StoreError:
        return
    if others:
        yield Finding(
            Severity.WARNING,
            "pool",
            horizons_in_words(others, ours),
            "set the same fairness.horizon at all clusters of the pool",
        )
