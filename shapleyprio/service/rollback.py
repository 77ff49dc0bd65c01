"""Everything back as it was found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.service import push
from shapleyprio.service.push import PushCounts, Stamp, Wanted
from shapleyprio.slurm.channels import CHANNELS, Channel, Claims
from shapleyprio.slurm.port import PendingQueue, Slurm
from shapleyprio.store import ClusterStore, ManagedValue, NewPush

REASON = "put back as it was found"
UNSEEN_REASON = f"{REASON}, unseen: no longer pending{push.UNREADABLE}"


def plan_rollback(
    store: ClusterStore, slurm: Slurm, channels: Iterable[Channel], stamp: Stamp
) -> list[NewPush]:
    """Returns the writes on these channels that put back what stood there before we came.

    What somebody else has changed since is left alone. Slurm does not show what stands at held
    and at running jobs, nor accounting at once which jobs run: there the old value is written
    unseen, and Slurm refuses where the job is gone.

    Args:
        store: of the cluster, where the managed values are.
        slurm: where the jobs are.
        channels: which.
        stamp: for the record.

    Raises:
        SlurmError: nothing was changed.
        StoreError: so for the store.
    """
    with store.reading() as view:
        found = {channel: view.managed_values(channel.name) for channel in channels}
        running = view.unfinished_runs() if any(found.values()) else []
    nothing = Wanted(points={}, reasons={}, put_back=REASON)
    pushes: list[NewPush] = []
    for channel, managed in found.items():
        if not managed:
            continue
        queue = slurm.pending() if channel.per_job else PendingQueue()
        targets = channel.targets(slurm, queue.jobs, Claims.of_nobody(managed))
        if channel.per_job:
            shown = {target.key for target in targets}
            unseen = list(_unseen(shown, managed, queue, running))
            pushes += _put_back_unseen(channel, managed, unseen, stamp)
        pushes += push.plan(channel, targets, managed, nothing, stamp)
    return pushes


def roll_back(store: ClusterStore, slurm: Slurm) -> PushCounts:
    """Puts back what stood there before we came, on every channel.

    Raises:
        SlurmError: what was put back by then stays so; run it again.
        StoreError: so for the store.
    """
    push.settle_open(store, slurm)
    stamp = Stamp(cycle=0, at=slurm.controller().time)
    return push.carry_out(store, slurm, plan_rollback(store, slurm, CHANNELS.values(), stamp))


@dataclass(frozen=True, slots=True)
class _UnseenJob:
    """A job at which Slurm does not show what stands there."""

    job_id: int
    array_job_id: int
    target: str
    label: str
    reason: str = REASON


def _unseen(
    shown: Collection[str],
    managed: Iterable[str],
    queue: PendingQueue,
    running: Iterable[Run],
) -> Iterator[_UnseenJob]:
    """Yields held and running jobs, and managed ones that may have started since the last cycle.

    Where a line of the queue could not be read, one of the last may be that line's job.

    Args:
        shown: keys of the jobs at which Slurm does show it.
        managed: keys of the jobs that we wrote to.
        queue: all jobs that wait.
        running: as accounting has it.
    """
    known = set()
    for job in queue.jobs:
        known.add(job.job_id)
        if str(job.job_id) not in shown:
            yield _UnseenJob(job.job_id, job.array_job_id, job.target, job.label)
    for run in running:
        if run.key.job_id not in known:
            known.add(run.key.job_id)
            yield _UnseenJob(run.key.job_id, run.array_job_id, str(run.key.job_id), run.label)
    reason = UNSEEN_REASON if queue.malformed else REASON
    for key in set(managed) - {str(job_id) for job_id in known}:
        yield _UnseenJob(int(key), int(key), key, key, reason)


def _put_back_unseen(
    channel: Channel, managed: Mapping[str, ManagedValue], jobs: Iterable[_UnseenJob], stamp: Stamp
) -> Iterator[NewPush]:
    for job in jobs:
        value = managed.get(str(job.job_id)) or managed.get(str(job.array_job_id))
        if value is not None and value.written[-1] != value.original:
            yield NewPush(
                cycle=stamp.cycle,
                channel=channel.name,
                target=job.target,
                key=str(job.job_id),
                organization=NOBODY,
                label=job.label,
                original=value.original,
                old=value.written[-1],
                new=value.original,
                reason=job.reason,
                at=stamp.at,
            )
