"""Everything back as it was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shapleyprio.service import push
from shapleyprio.slurm.port import Channel, PendingJob, Slurm
from shapleyprio.store import NewPush, Store


def plan_rollback(store: Store, cluster: str, slurm: Slurm) -> Mapping[Channel, Sequence[NewPush]]:
    """The writes on every channel that put back what was asked for before we came.

    Raises:
        SlurmError, StoreError: nothing was changed.
    """
    now = slurm.controller().time
    with store.reading(cluster) as view:
        marks = {channel: view.marks(channel) for channel in Channel}
    pending = [job for job in slurm.pending() if isinstance(job, PendingJob)]
    plans = {}
    for channel in Channel:
        if channel is Channel.QOS:
            owners = dict.fromkeys(marks[channel], "")
            places = push.qos_places(slurm.qos_priorities(), owners) if owners else []
        else:
            places = push.job_places(channel, pending, {})
        plans[channel] = push.plan(
            channel, places, {}, marks[channel], now=now, cycle=0, reasons={}, put_back="rollback"
        )
    return plans


def roll_back(store: Store, cluster: str, slurm: Slurm) -> push.Outcome:
    """Writes what `plan_rollback` plans, and forgets what we had written where that worked.

    Raises:
        SlurmError, StoreError: what was put back by then stays so; run it again.
    """
    push.settle_open(store, cluster, slurm)
    total = push.Outcome()
    for channel, pushes in plan_rollback(store, cluster, slurm).items():
        total += push.carry_out(store, cluster, slurm, channel, pushes)
    return total
