"""Everything back as it was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shapleyprio.fairness.runs import Run
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.service import push
from shapleyprio.slurm.port import Channel, PendingJob, Slurm
from shapleyprio.store import Mark, NewPush, Store

REASON = "put back as it was found"


def plan_rollback(
    store: Store,
    cluster: str,
    slurm: Slurm,
    channels: Iterable[Channel],
    *,
    cycle: int,
    now: int,
) -> list[NewPush]:
    """The writes on these channels that put back what was asked for before we came.

    What somebody else has changed since is left alone. Slurm does not tell what stands at held
    and at running jobs, nor accounting at once which jobs run: there the asked value is written
    unseen, and Slurm refuses where the job is gone.

    Args:
        store: where the marks are.
        cluster: its name there.
        slurm: where the jobs are.
        channels: which.
        cycle: its number, for the record.
        now: second, for the record.

    Raises:
        SlurmError: nothing was changed.
        StoreError: so for the store.
    """
    with store.reading(cluster) as view:
        marks = {channel: found for channel in channels if (found := view.marks(channel))}
        running = view.unfinished_runs() if marks else []
    pushes: list[NewPush] = []
    for channel, marked in marks.items():
        if channel is Channel.QOS:
            places = push.qos_places(slurm.qos_priorities(), dict.fromkeys(marked, NOBODY))
        else:
            pending = [job for job in slurm.pending() if isinstance(job, PendingJob)]
            places = push.job_places(channel, pending, {})
            pushes += _unseen(channel, marked, pending, running, cycle=cycle, now=now)
        pushes += push.plan(
            channel, places, {}, marked, cycle=cycle, now=now, reasons={}, put_back=REASON
        )
    return pushes


def roll_back(store: Store, cluster: str, slurm: Slurm) -> push.Outcome:
    """Puts back what was asked for, on every channel.

    Raises:
        SlurmError: what was put back by then stays so; run it again.
        StoreError: so for the store.
    """
    push.settle_open(store, cluster, slurm)
    now = slurm.controller().time
    plan = plan_rollback(store, cluster, slurm, Channel, cycle=0, now=now)
    return push.carry_out(store, cluster, slurm, plan)


def _unseen(
    channel: Channel,
    marks: Mapping[str, Mark],
    pending: Sequence[PendingJob],
    running: Sequence[Run],
    *,
    cycle: int,
    now: int,
) -> list[NewPush]:
    waiting = {job.job_id for job in pending}
    jobs = [(job.job_id, job.target, job.label) for job in pending if job.site_factor is None]
    if channel is Channel.NICE:
        jobs = []
    jobs += [
        (run.key.job_id, str(run.key.job_id), run.label)
        for run in running
        if run.key.job_id not in waiting
    ]
    told = {str(number) for number in waiting} | {str(job_id) for job_id, _, _ in jobs}
    jobs += [(int(key), key, key) for key in marks.keys() - told]  # started since the last cycle?
    pushes = []
    for job_id, target, label in jobs:
        mark = marks.get(str(job_id)) or marks.get(push.base_key(label, job_id))
        if mark is not None and mark.written[-1] != mark.asked:
            pushes.append(
                NewPush(
                    cycle=cycle,
                    channel=channel,
                    target=target,
                    key=str(job_id),
                    organization=NOBODY,
                    label=label,
                    asked=mark.asked,
                    old=mark.written[-1],
                    new=mark.asked,
                    reason=REASON,
                    at=now,
                )
            )
    return pushes
