"""Accounts for a cluster as a new daemon would, into a store that is then deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from shapleyprio.config import Config
from shapleyprio.config.segments import segments_of
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.slurm.port import Slurm
from shapleyprio.store import ClusterStore, Store


@contextmanager
def accounted_afresh(
    config: Config, slurm: Slurm, cluster: str, since: int | None
) -> Iterator[Sequence[ClusterStore]]:
    """Reads all of Slurm's accounting from a second on; nothing is written into Slurm.

    Args:
        config: who owns accounts and nodes, now and in the past.
        slurm: the cluster.
        cluster: its name.
        since: second; None for when a new ledger opens.

    Yields:
        the cluster's ledgers.

    Raises:
        SlurmError: Slurm is away.
        AccountingError: the records are not as they must be.
        StoreError: there is no room for what was read; TMPDIR says where it is kept.
    """
    if since is not None:
        fairness = config.fairness.model_copy(update={"since": since})
        config = config.model_copy(update={"fairness": fairness})
    with TemporaryDirectory(prefix="shapleyprio-export-") as directory:
        url = f"sqlite:///{Path(directory, 'store.db')}"
        with Store.open(url, create=True) as store:
            ledgers = []
            for segment in segments_of(config, cluster):
                ledger = store.cluster(segment.ledger)
                Cycle(segment.configured(config), slurm, ledger).run(dry_run=True)
                ledgers.append(ledger)
            yield ledgers
