"""Deletes from a ledger's store what no value depends on any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from shapleyprio.config import Config
from shapleyprio.daemon.pushing import push, submission
from shapleyprio.fairness.runs import UNFINISHED_STATES
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import Malformed, Slurm
from shapleyprio.slurm.remembering import Source
from shapleyprio.store import ClusterStore, Transaction


def prune(
    config: Config,
    slurm: Slurm,
    store: ClusterStore,
    source: Source,
    *,
    until: float,
) -> int:
    """Deletes in several transactions what has become old, and values of jobs that are gone.

    Args:
        config: says how long what is kept.
        slurm: the cluster.
        store: of the ledger.
        source: of the jobs that are still there.
        until: second of the monotonic clock from which no other transaction is begun.

    Returns:
        how many runs.

    Raises:
        SlurmError: it is unknown which jobs are still there.
        StoreError: not all was deleted.
    """
    controller = source.controller()
    now = controller.time
    queue = source.pending()
    known = controller.accounting_backlog == 0 and not queue.malformed
    started = source.started()  # of which accounting may not know yet
    keys = push.live_keys(queue.jobs) | push.live_keys(started)
    live = _live_keys(slurm, store, keys) if known else None
    service = config.service
    overlap = max(service.overlap, service.keep_runs)

    def prune_jobs(transaction: Transaction) -> None:
        for channel in CHANNELS.values():
            if live is not None and channel.per_job:
                transaction.pushes.prune_managed_values(channel.name, live)
        if known:
            submission.forget(transaction, queue.jobs)
            transaction.observed.prune_kept_back(set(map(int, keys)))

    def prune_history(transaction: Transaction) -> int:
        return transaction.prune_history(
            now - service.keep_history, pushes_before=now - service.keep_pushes
        )

    store.transact(prune_jobs)
    _as_often_as_needed(store, prune_history, until)
    return _as_often_as_needed(
        store, lambda rows: prune_runs(rows, config.fairness.horizon, overlap=overlap), until
    )


def prune_runs(transaction: Transaction, horizon: int | None, *, overlap: int) -> int:
    """Deletes runs that ended before the fold: their worth is a constant in the ledger.

    Of very many, those go that one transaction prunes. Those stay that ended after a second
    that records still to come may bear.

    Args:
        transaction: of the ledger.
        horizon: age in seconds from which a part gains nothing more, None for never.
        overlap: runs that ended so shortly before the watermark stay, in seconds: they will
            be read again.

    Returns:
        how many.
    """
    watermark = transaction.ledger.watermark()
    if horizon is None or watermark is None:
        return 0
    known = min(watermark.complete_until, watermark.sure_until)
    sure_fold = watermark.sure_until - horizon  # the clock may be ahead
    before = min(watermark.folded_to, sure_fold, known - overlap - 1)
    before = transaction.runs.prunable_until(before)
    pruned = transaction.runs.prune(before)
    watermark = replace(watermark, pruned_until=max(before, watermark.pruned_until))
    transaction.observed.prune_capacities(watermark.pruned_until)
    transaction.observed.prune_layout(watermark.pruned_until)
    transaction.ledger.save_watermark(watermark)
    return pruned


def _as_often_as_needed(
    store: ClusterStore, work: Callable[[Transaction], int], until: float
) -> int:
    pruned = 0
    while rows := store.transact(work):
        pruned += rows
        if time.monotonic() >= until:
            break
    return pruned


def _live_keys(slurm: Slurm, store: ClusterStore, known: set[str]) -> set[str] | None:
    """Returns the keys of jobs that have not ended, None if a line of them cannot be read.

    Args:
        slurm: is asked for jobs that were written to and are not known any more.
        store: has those that were written to.
        known: of jobs that wait or run. Those that ran may have been requeued meanwhile.
    """
    with store.reading() as view:
        live = known | {
            key
            for run in view.runs.unfinished()
            for key in (str(run.key.job_id), str(run.array_job_id))
        }
        managed = {
            key
            for channel in CHANNELS.values()
            if channel.per_job
            for key in view.pushes.managed_values(channel.name)
        }
    missing = sorted(int(key) for key in managed - live)
    for record in slurm.records_of(missing) if missing else ():
        if isinstance(record, Malformed):
            return None
        if record.state in UNFINISHED_STATES:
            live.add(str(record.job_id))
    return live
