"""The ledger that is meant: of the cluster that Slurm names, or that the store holds."""

from __future__ import annotations

from collections.abc import Sequence

from shapleyprio.common.errors import ConfigError
from shapleyprio.common.wording import listed
from shapleyprio.config import Config
from shapleyprio.config.segments import Segment, segments_of
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.slurm.port import Slurm
from shapleyprio.store import ClusterStore, Store, StoreError


def cluster_of(config: Config, slurm: Slurm) -> str:
    """Returns ClusterName; the configuration's, if it names one, must be Slurm's own.

    Raises:
        ConfigError: they differ.
        SlurmError: Slurm cannot be asked.
    """
    cluster = slurm.cluster()
    if config.slurm.cluster not in {None, cluster}:
        raise ConfigError(
            [
                f"slurm.cluster: {config.slurm.cluster!r} is configured, but Slurm here is "
                f"{cluster!r}; correct the key or leave it out"
            ]
        )
    return cluster


def stored_cluster(config: Config, store: Store, pool: str | None = None) -> ClusterStore:
    """Returns the ledger whose rows to read, without asking Slurm.

    Args:
        config: in force.
        store: that holds it.
        pool: which one is meant where pools split the cluster; None for the only one.

    Raises:
        ConfigError: as for `segment_meant`.
        StoreError: as for `stored_ledgers`.
    """
    cluster = _stored_cluster_name(config, store)
    return store.cluster(segment_meant(config, cluster, pool).ledger)


def stored_ledgers(config: Config, store: Store, pool: str | None = None) -> list[ClusterStore]:
    """Returns the ledgers of the cluster whose rows to read, in the order of the pools.

    Args:
        config: in force.
        store: that holds them.
        pool: whose ledger alone is meant; None for all.

    Raises:
        ConfigError: the cluster has no such pool.
        StoreError: the store holds no cluster, or several and the configuration names none.
    """
    cluster = _stored_cluster_name(config, store)
    return [store.cluster(one.ledger) for one in segments_meant(config, cluster, pool)]


def segments_meant(config: Config, cluster: str, pool: str | None) -> Sequence[Segment]:
    """Returns what the pools have of a cluster, in their order.

    Args:
        config: in force.
        cluster: its name.
        pool: whose segment alone is meant; None for all.

    Raises:
        ConfigError: the cluster has no such pool.
    """
    return segments_of(config, cluster) if pool is None else [segment_meant(config, cluster, pool)]


def segment_meant(config: Config, cluster: str, pool: str | None) -> Segment:
    """Returns what the pool of that name has of a cluster.

    Args:
        config: in force.
        cluster: its name.
        pool: None for the only one.

    Raises:
        ConfigError: the cluster has no such pool, or several and none is given.
    """
    segments = segments_of(config, cluster)
    found = [segment for segment in segments if pool in {None, segment.name}]
    names = listed([segment.name for segment in segments if segment.pool]) or "none"
    if not found:
        raise ConfigError([f"--pool: {cluster} is not in pool {pool!r}; it is in {names}"])
    if len(found) > 1:
        raise ConfigError([f"--pool: {cluster} is in {names}; name one of them"])
    return found[0]


def _stored_cluster_name(config: Config, store: Store) -> str:
    clusters = sorted({cluster_behind(name) for name in store.clusters()})
    if config.slurm.cluster in clusters:
        return config.slurm.cluster
    if len(clusters) > 1 and config.slurm.cluster is None:
        raise StoreError(
            f"the store holds {', '.join(clusters)}; name one of them as slurm.cluster"
        )
    if len(clusters) != 1 or config.slurm.cluster is not None:
        wanted = "" if config.slurm.cluster is None else f", not {config.slurm.cluster}"
        raise StoreError(
            f"the store holds {', '.join(clusters) or 'no cluster yet'}{wanted}; "
            "has the daemon run? `shapleyprio daemon --once` makes a first cycle"
        )
    return clusters[0]
