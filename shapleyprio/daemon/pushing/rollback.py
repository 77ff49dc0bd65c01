"""Restores every value as it was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from shapleyprio.daemon.pushing import push
from shapleyprio.daemon.pushing.by_hand import managed_jobs, note_set_since, set_since
from shapleyprio.daemon.pushing.push import PushCounts, Stamp, Wanted
from shapleyprio.daemon.pushing.submission import given_on, withdraw
from shapleyprio.fairness.tenure import NOBODY, Tenures
from shapleyprio.slurm.channels import CHANNELS, Channel, Claims
from shapleyprio.slurm.points_table import CHANNEL
from shapleyprio.slurm.port import (
    Malformed,
    PendingQueue,
    Slurm,
    SlurmUnavailableError,
    StartedJob,
)
from shapleyprio.slurm.text.queue import component_of, other_tasks
from shapleyprio.store import (
    ClusterStore,
    ManagedValue,
    NewPush,
    PublishedPoints,
    PushState,
    Transaction,
)

REASON = "put back as it was found"
UNREADABLE = ", or its line could not be read"
"""What is said of a job that was not seen while lines of the queue could not be read."""

OVER = frozenset(
    {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "TIMEOUT"}
)
"""States after which Slurm does not run a job again by itself."""

MOST_ROUNDS = 5
"""A rollback looks at Slurm so many times at most, while there is something to put back."""

UNSEEN_REASON = f"{REASON}, unseen: no longer pending{UNREADABLE}"


def plan_rollback(
    store: ClusterStore,
    slurm: Slurm,
    channels: Iterable[Channel],
    stamp: Stamp,
) -> list[NewPush]:
    """Returns the writes that restore the original values on these channels.

    What somebody else has changed since is left alone. Slurm does not show the values at held
    and at running jobs: there the old value is written unseen. So it is at those that neither wait
    nor run, unless accounting says that they have ended: some may have been requeued meanwhile.

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
        found = {channel: view.pushes.managed_values(channel.name) for channel in channels}
        published = view.pushes.published_points()
        given = {channel: given_on(channel, published) for channel in found}
        if not any([*found.values(), *given.values()]):
            return []
        tenures = view.ledger.tenures()
    nothing = Wanted(points={}, reasons={}, put_back=REASON)
    pushes: list[NewPush] = []
    for channel, managed in found.items():
        if not managed and not given[channel]:
            continue
        queue = slurm.pending() if channel.per_job else PendingQueue()
        targets = channel.targets(slurm, queue.jobs, Claims.of_nobody(managed))
        if channel.per_job:
            shown = {target.key for target in targets}
            started = slurm.started()  # after the queue, to have what has just left it
            lost = _lost(managed, queue, started)
            names = _names(store, lost - _ended(slurm, lost), queue, started)
            unseen = list(_unseen(shown, names, queue, started))
            pushes += _put_back_unseen(channel, managed, unseen, stamp)
            if published is not None and given[channel]:
                pushes += _take_back_unseen(published, managed, unseen, tenures, stamp)
        least = None
        with suppress(SlurmUnavailableError):  # without slurmdbd it goes on all the same
            least = channel.least_asked(lambda: slurm.layout().settings)
        pushes += push.plan(channel, targets, managed, nothing, stamp, given[channel], least)
    return pushes


def roll_back(store: ClusterStore, slurm: Slurm) -> PushCounts:
    """Restores the original values on every channel; new jobs get nothing any more.

    Then it looks again: meanwhile jobs may have begun to run or to wait, and what was written may
    not have got through.

    Raises:
        OutputError: the table of points cannot be removed, and nothing was put back.
        SlurmError: what was put back by then stays so; run it again.
        StoreError: so for the store.
    """
    withdraw(store)
    push.settle_open(store, slurm)
    fates: dict[tuple[str, str], PushState] = {}
    for number in range(MOST_ROUNDS + 1):
        stamp = Stamp(cycle=0, at=slurm.controller().time)
        with store.reading() as view:
            managed, published = managed_jobs(view), view.pushes.published_points()
        if any(managed.values()):
            note_set_since(store, set_since(slurm, slurm.pending().jobs, managed, published))
        found = plan_rollback(store, slurm, CHANNELS.values(), stamp)
        refused = {key for key, state in fates.items() if state is PushState.REFUSED}
        plan = [each for each in found if (each.channel, each.key) not in refused]
        if not plan or number == MOST_ROUNDS:
            break
        states = push.carry_out_each(store, slurm, plan)
        keys = [(each.channel, each.key) for each in plan]
        fates |= dict(zip(keys, states, strict=True))
    # what is still left then was written in each round, and does not stay
    fates |= dict.fromkeys([(each.channel, each.key) for each in plan], PushState.REFUSED)
    until = slurm.controller().time

    def end(transaction: Transaction) -> None:
        transaction.pushes.is_withdrawn(until)
        transaction.history.nothing_steers(until)

    store.transact(end)
    return push.counts(fates.values())


@dataclass(frozen=True, slots=True)
class _UnseenJob:
    """A job whose value Slurm does not show.

    Attributes:
        account, submit: None where not even that is known.
    """

    job_id: int
    array_job_id: int
    target: str
    label: str
    account: str | None = None
    submit: int | None = None
    reason: str = REASON


def _lost(
    managed: Mapping[str, ManagedValue], queue: PendingQueue, started: Iterable[StartedJob]
) -> set[int]:
    """Returns the jobs with something of ours that neither wait nor run, as far as is known."""
    known = {job.job_id for job in queue.jobs} | {job.job_id for job in started}
    ours = [key for key, value in managed.items() if value.is_ours]
    return set(map(int, ours)) - known


def _ended(slurm: Slurm, job_ids: Collection[int]) -> set[int]:
    """Returns the jobs that have certainly ended, so that they have no value.

    Where accounting is away or lags behind, none has.
    """
    if not job_ids:
        return set()
    states: dict[int, set[str]] = {}
    try:
        if slurm.controller().accounting_backlog:
            return set()
        for record in slurm.records_of(sorted(job_ids)):
            if isinstance(record, Malformed):
                return set()
            states.setdefault(record.job_id, set()).add(record.state)
    except SlurmUnavailableError:
        return set()
    return {job_id for job_id, found in states.items() if found <= OVER}


def _names(
    store: ClusterStore,
    lost: set[int],
    queue: PendingQueue,
    started: Iterable[StartedJob],
) -> dict[int, str]:
    """Returns lost job -> its name for Slurm; those without one of their own are left out.

    To Slurm the number of an array or of a heterogeneous job means all its tasks or components.
    Where others of them wait or run, its own name is that of the last write, less their tasks.

    Args:
        store: of the cluster.
        lost: as `_lost` has them.
        queue: all jobs that wait.
        started: all jobs that run.
    """
    if not lost:
        return {}
    others: defaultdict[int, list[str]] = defaultdict(list)
    known = [(job.array_job_id, job.target) for job in queue.jobs]
    known += [(job.array_job_id, job.label) for job in started]
    for array, target in known:
        others[int(component_of(target) or array)].append(target)
    names = {job_id: str(job_id) for job_id in lost}
    with store.reading() as view:
        for number in others.keys() & lost:
            for last in view.pushes.latest(limit=1, key=str(number)):
                names[number] = other_tasks(last.target, others[number]) or ""
    return {number: name for number, name in names.items() if name}


def _unseen(
    shown: Collection[str],
    names: Mapping[int, str],
    queue: PendingQueue,
    started: Iterable[StartedJob],
) -> Iterator[_UnseenJob]:
    """Yields held and running jobs, and lost ones.

    Where a line of the queue could not be read, one of the last may be that line's job.

    Args:
        shown: keys of the jobs at which Slurm does show it.
        names: as `_names` has them.
        queue: all jobs that wait.
        started: all jobs that run.
    """
    known = set()
    for job in queue.jobs:
        known.add(job.job_id)
        if str(job.job_id) not in shown:
            yield _UnseenJob(
                job.job_id, job.array_job_id, job.target, job.label, job.account, job.submit
            )
    for begun in started:
        if begun.job_id not in known:
            known.add(begun.job_id)
            label = begun.label  # the number may be that of all tasks of its array as well
            yield _UnseenJob(
                begun.job_id, begun.array_job_id, label, label, begun.account, begun.submit
            )
    reason = UNSEEN_REASON if queue.malformed else REASON
    for job_id, name in names.items():
        yield _UnseenJob(job_id, job_id, name, name, reason=reason)


def _known_of(job: _UnseenJob, managed: Mapping[str, ManagedValue]) -> ManagedValue | None:
    """Returns what we did to a job, or to its array when it was part of that.

    Whatever we ever wrote there may stand at the task, though it was put back at the rest since.
    """
    value = managed.get(str(job.job_id))
    if value is None and (array := managed.get(str(job.array_job_id))) is not None:
        ours = [one for one in array.written if one != array.original]
        value = replace(array, written=(array.original, *ours))
    return value


def _put_back_unseen(
    channel: Channel,
    managed: Mapping[str, ManagedValue],
    jobs: Iterable[_UnseenJob],
    stamp: Stamp,
) -> Iterator[NewPush]:
    """Yields writes to jobs that had a value of ours when they were last seen."""
    for job in jobs:
        value = _known_of(job, managed)
        if value is not None and value.is_ours:
            yield _unseen_push(channel.name, job, value, stamp)


def _take_back_unseen(
    published: PublishedPoints,
    managed: Mapping[str, ManagedValue],
    jobs: Iterable[_UnseenJob],
    tenures: Tenures,
    stamp: Stamp,
) -> Iterator[NewPush]:
    """Yields writes to other jobs of organizations that may have points from the table.

    They may never have been seen, or have changed their account since something was put back. A
    site factor that an administrator gave to one of those is lost: Slurm does not show it.
    """
    for job in jobs:
        if job.submit is None or job.account is None:
            continue
        value = _known_of(job, managed)
        if value is None and published.may_have_given(job.submit):
            value = ManagedValue(push.BEFORE_SUBMISSION, published.given[-1:])
        elif (
            value is None
            or value.is_ours
            or value.by_hand is not None
            or published.until is not None
        ):
            continue
        if tenures.holder("account", job.account, stamp.at) != NOBODY:
            yield _unseen_push(CHANNEL, job, value, stamp)


def _unseen_push(channel: str, job: _UnseenJob, value: ManagedValue, stamp: Stamp) -> NewPush:
    return NewPush(
        cycle=stamp.cycle,
        channel=channel,
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
