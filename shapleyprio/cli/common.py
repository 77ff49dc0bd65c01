"""Functions that commands share: opening things, exit codes, signals."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from shapleyprio.client import DaemonError
from shapleyprio.config import Config, ConfigError, load_config
from shapleyprio.config.segments import Segment, segments_of
from shapleyprio.errors import OutputError, ReplayError
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.service.cluster_clock import AccountingError
from shapleyprio.service.explain import NothingToExplainError
from shapleyprio.service.lease import LeaseHeldError
from shapleyprio.service.open_tenures import CorrectionError
from shapleyprio.slurm.port import Slurm, SlurmError
from shapleyprio.store import ClusterStore, Store, StoreError
from shapleyprio.wording import listed

EXIT_CODES: dict[type[Exception], int] = {
    ConfigError: 2,
    SlurmError: 3,
    LeaseHeldError: 6,
    StoreError: 4,
    AccountingError: 5,
    CorrectionError: 2,
    NothingToExplainError: 2,
    ReplayError: 2,
    OutputError: 2,
    MemoryError: 2,
}
"""Errors that end a command with one line -> exit code; the first that fits counts."""


def exit_code_of(error: Exception) -> int | None:
    """Returns the exit code of a known error, None for a defect."""
    if isinstance(error, DaemonError):
        return error.code
    return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), None)


def alone(values: list[Any]) -> Any:
    """Returns as JSON what each ledger of a cluster has: of one alone without a list."""
    return values[0] if len(values) == 1 else {"pools": values}


def load(config_path: Path) -> Config:
    """Reads the configuration; ConfigError ends the command with exit code 2."""
    return load_config(config_path)


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
        raise ConfigError([f"--pool: {cluster} is in no pool {pool!r}; it is in {names}"])
    if len(found) > 1:
        raise ConfigError([f"--pool: {cluster} is in {names}; name the one that is meant"])
    return found[0]


def _stored_cluster_name(config: Config, store: Store) -> str:
    clusters = sorted({cluster_behind(name) for name in store.clusters()})
    if config.slurm.cluster in clusters:
        return config.slurm.cluster
    if len(clusters) > 1 and config.slurm.cluster is None:
        raise StoreError(
            f"the store holds {', '.join(clusters)}, not one of them alone; "
            "name the one that is meant as slurm.cluster"
        )
    if len(clusters) != 1 or config.slurm.cluster is not None:
        wanted = "" if config.slurm.cluster is None else f", not {config.slurm.cluster}"
        raise StoreError(
            f"the store holds {', '.join(clusters) or 'no cluster yet'}{wanted}; "
            "has the daemon run? `shapleyprio daemon --once` makes a first cycle"
        )
    return clusters[0]


@contextmanager
def termination_unwinds() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP end the process as an error would: everything opened is closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signals = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        if before[number] is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, leave)
    try:
        yield
    finally:
        for number in signals:
            signal.signal(number, before[number])
