"""What admins order beside the configuration, kept in the store; the next cycle follows it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from shapleyprio.common.errors import KnownError
from shapleyprio.common.wording import clock_time
from shapleyprio.config.segments import Segment
from shapleyprio.daemon.pushing.by_hand import by_hand_in
from shapleyprio.daemon.pushing.lasting import means
from shapleyprio.fairness.tenure import NOBODY, takes_part
from shapleyprio.slurm.port import PendingJob, Slurm
from shapleyprio.slurm.text.queue import component_of, has_first_task
from shapleyprio.store import ClusterStore, ExceptionRow, PauseRow, Transaction, View


class OrderError(KnownError):
    """An order that cannot be followed; the message is one line for the admin."""


def pause(store: ClusterStore, row: PauseRow) -> None:
    """Pauses steering.

    Raises:
        OrderError: it is paused already.
        StoreError: nothing was changed.
    """
    lasting = store.transact(lambda transaction: transaction.orders.begin_pause(row))
    if lasting is not None:
        raise OrderError(
            f"already paused since {clock_time(lasting.since)} by {lasting.user}:"
            f" {lasting.reason}; run `shapleyprio resume` first to change that"
        )


def resume(store: ClusterStore, at: int, user: str) -> PauseRow:
    """Ends the pause, and returns it as it was.

    Args:
        store: of the cluster.
        at: second by the cluster's clock.
        user: who ends it.

    Raises:
        OrderError: nothing is paused.
        StoreError: nothing was changed.
    """
    lasting = store.transact(lambda transaction: transaction.orders.end_pause(at, user))
    if lasting is None:
        raise OrderError("nothing is paused")
    return lasting


def put_first(
    store: ClusterStore, slurm: Slurm, segments: Sequence[Segment], row: ExceptionRow
) -> list[ExceptionRow]:
    """Puts a job, what waits of an array, or each component of a heterogeneous job first.

    Args:
        store: of the cluster.
        slurm: where the job waits.
        segments: of the cluster.
        row: what is ordered; its label is the job's number or name, as somebody has typed it.

    Returns:
        what was ordered, with the number and the organization of the job. Components have an
        exception each, since they may wait in several pools and count for several organizations.

    Raises:
        OrderError: there is no such job, or it cannot go first.
        SlurmError, StoreError: nothing was changed.
    """
    found = [
        _refusing(store, segments, replace(row, job_id=job_id, label=label), jobs)
        for job_id, label, jobs in _waiting(slurm, row.label)
    ]
    for ledger, ordered, jobs in found:
        _begin(ledger, ordered, jobs)
    return [ordered for _, ordered, _ in found]


def _refusing(
    store: ClusterStore, segments: Sequence[Segment], row: ExceptionRow, jobs: Sequence[PendingJob]
) -> tuple[ClusterStore, ExceptionRow, Sequence[PendingJob]]:
    """Returns what is to be ordered and the ledger for it, or raises why it cannot be."""
    first = jobs[0]
    segment = next((one for one in segments if one.has(first.partition)), None)
    if segment is None:
        raise OrderError(f"job {row.label} waits in a partition of no pool, so nothing steers it")
    ledger = store.ledger(segment.ledger)
    with ledger.reading() as view:
        _refuse_second(view.orders.ordered(), jobs)
        organization = _organization_of(view, first)
        for job in jobs:
            _refuse_by_hand(view, job, organization)
    return ledger, replace(row, organization=organization), jobs


def _begin(ledger: ClusterStore, row: ExceptionRow, jobs: Sequence[PendingJob]) -> None:
    lasting = ledger.transact(lambda transaction: transaction.orders.begin_exception(row))
    _refuse_second([lasting] if lasting else [], jobs)


def undo_first(store: ClusterStore, label: str, at: int, user: str) -> list[ExceptionRow]:
    """Ends the exception of a job, or of each component, and returns them as they were.

    Args:
        store: of the cluster.
        label: number or name of the job.
        at: second by the cluster's clock.
        user: who ends it.

    Raises:
        OrderError: there is none.
        StoreError: nothing was changed.
    """

    def end(rows: Transaction) -> list[ExceptionRow]:
        lasting = rows.orders.ordered()
        meant = next((row for row in lasting if label in {row.label, str(row.job_id)}), None)
        if meant is None:
            return []
        whole = _whole(meant.label)
        ended = [row for row in lasting if _whole(row.label) == whole]
        for row in ended:
            rows.orders.end_exception(row.job_id, at, f"undone by {user}")
        return ended

    ended = store.transact(end)
    if not ended:
        raise OrderError(
            f"job {label} does not go first by an exception; `status` lists those that do"
        )
    return ended


def called(rows: Sequence[ExceptionRow]) -> str:
    """Names the job of one exception, or of those of its components.

    Args:
        rows: as `put_first` returns them.
    """
    label = rows[0].label
    return label if len(rows) == 1 else f"{_whole(label)} with its {len(rows)} components"


def _whole(label: str) -> str:
    """Returns the name of the heterogeneous job of a component; that of another job as it is."""
    return component_of(label) or label


def _waiting(slurm: Slurm, label: str) -> list[tuple[int, str, Sequence[PendingJob]]]:
    """Returns number, name and what waits of a job, an array, or each component of a job."""
    queue = slurm.pending()
    array = [job for job in queue.jobs if str(job.array_job_id) == label]
    jobs = [job for job in queue.jobs if label in {job.label, str(job.job_id)}]
    whole = component_of(jobs[0].label) if jobs else None
    if whole is not None:
        components = (job for job in queue.jobs if component_of(job.label) == whole)
        return [(job.job_id, job.label, [job]) for job in components]
    if array:
        return [(int(label), label, array)]
    if jobs:
        return [(jobs[0].job_id, jobs[0].label, jobs)]
    for job in slurm.started():
        if label in {job.label, str(job.job_id), str(job.array_job_id)}:
            raise OrderError(f"job {label} is not pending: it has started")
    tasks = next((job for job in queue.jobs if has_first_task(job.label, label)), None)
    if tasks is not None:
        raise OrderError(
            f"the tasks of {tasks.label} wait as one; name the whole array: {tasks.array_job_id}"
        )
    for sibling, cluster in queue.elsewhere:
        if label in {sibling.label, str(sibling.job_id), str(sibling.array_job_id)}:
            raise OrderError(
                f"job {label} is the federation's and counts at {cluster}, whose daemon gives it"
                " its priority; order it there"
            )
    unreadable = ", or its line could not be read" if queue.malformed else ""
    raise OrderError(f"no job {label} is pending{unreadable}; see `squeue -j {label}`")


def _refuse_second(rows: Collection[ExceptionRow], jobs: Collection[PendingJob]) -> None:
    for row in rows:
        if any(means(row, job) for job in jobs):
            raise OrderError(
                f"job {row.label} goes first since {clock_time(row.since)} by {row.user}:"
                f" {row.reason}; run `shapleyprio first {row.label} --undo` first to change that"
            )


def _refuse_by_hand(view: View, job: PendingJob, organization: str) -> None:
    """Refuses a job that is somebody else's to place; a nice below 0 counts beside our points."""
    hands = by_hand_in(view, job, organization)
    for kind, called in (("priority", "priority"), ("site_factor", "site factor")):
        if kind in hands:
            raise OrderError(
                f"somebody has set the {called} of job {job.label} by hand, so it is left alone;"
                " undo that first"
            )


def _organization_of(view: View, job: PendingJob) -> str:
    """Returns for which organization a job counts."""
    watermark = view.ledger.watermark()
    if watermark is None:
        raise OrderError(
            f"the store has nothing on cluster {view.cluster} yet; let the daemon run a cycle"
        )
    tenures, t = view.ledger.tenures(), watermark.accounted_to
    none = f"job {job.label} counts for no organization:"
    if not takes_part(job.partition, tenures.left_out("partition", t)):
        raise OrderError(f"{none} partition {job.partition} is left out")
    if tenures.is_left_out("account", job.account, t):
        raise OrderError(f"{none} account {job.account} is left out")
    organization = tenures.holder("account", job.account, t)
    if organization == NOBODY:
        raise OrderError(f"{none} none claims account {job.account}")
    return organization
