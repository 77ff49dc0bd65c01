"""Exceptions from one cycle to the next: which last, and which begin or are over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from shapleyprio.common.wording import visible
from shapleyprio.daemon.pushing.by_hand import SITE_FACTOR
from shapleyprio.slurm.port import PendingJob, PendingQueue, Slurm, StartedJob
from shapleyprio.slurm.text.queue import first_tasks
from shapleyprio.store import ClusterStore, ExceptionRow, Transaction

STARTED = "the job started"
LEFT = "the job left the queue"
TIME_IS_UP = "its time was up"
WITHDRAWN = "its guarantee no longer holds"

ASKED, KEPT, BROKEN = "asked", "kept", "broken"
"""What becomes of a guarantee: it is broken by a job that has not started when its time is up."""

log = structlog.get_logger(__name__)


def means(row: ExceptionRow, job: PendingJob) -> bool:
    """Returns whether an exception is of a job, or one that an admin has ordered of its array."""
    return row.job_id == job.job_id or (row.job_id == job.array_job_id and row.is_of_array)


class LastingExceptions:
    """The exceptions that last, from cycle to cycle.

    Args:
        store: that has them.
    """

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._known: frozenset[tuple[int, int]] = frozenset()

    def follow(
        self,
        queue: PendingQueue,
        pending: Sequence[PendingJob],
        started: Callable[[], Iterable[StartedJob]],
        t: int,
        guaranteed: Guaranteed | None = None,
    ) -> Followed:
        """Ends the exceptions whose end has come, and begins those of guarantees.

        Args:
            queue: the jobs that wait, as the guarantees were found among them.
            pending: those of them that count in the ledger.
            started: reads later which jobs have started.
            t: second by the cluster's clock.
            guaranteed: which jobs guarantees put first; None if that is not known.
        """
        with self._store.reading() as view:
            rows = view.orders.exceptions()
            moved = _moved_to(
                pending, queue, [row for row in view.orders.ordered() if row not in rows]
            )
        if moved:
            self._store.transact(lambda transaction: transaction.orders.take_over(moved))
            rows += moved
        over = self._ended(rows, queue, started, t, guaranteed)
        lasting = [row for row in rows if row.job_id not in over]
        known = {row.job_id for row in lasting}
        new = [row for row in guaranteed.jobs if row.job_id not in known] if guaranteed else []
        if over or new:
            self._change(over, new, t)
        for row in lasting:
            if not row.by_guarantee and (row.job_id, row.since) not in self._known:
                log.warning("a job goes first by an exception", **_in_log(row))
        self._known = frozenset((row.job_id, row.since) for row in lasting)
        became = Counter((row.organization, ASKED) for row in new)
        for row in rows:
            if row.by_guarantee and (result := _RESULTS.get(over.get(row.job_id, ""))):
                became[row.organization, result] += 1
        return Followed([*lasting, *new], became)

    def _ended(
        self,
        rows: Sequence[ExceptionRow],
        queue: PendingQueue,
        started: Callable[[], Iterable[StartedJob]],
        t: int,
        guaranteed: Guaranteed | None,
    ) -> dict[int, str]:
        """Returns job id -> what ended its exception.

        Of what accounting has just told nobody is asked: a guarantee is kept by a task, too.
        """
        known = guaranteed.started if guaranteed else ()
        over = {row.job_id: STARTED for row in rows if row.by_guarantee and row.job_id in known}
        others = [row for row in rows if row.job_id not in over]
        if others:
            over |= self._over(others, queue, started, t)
        if guaranteed is not None:
            asking = {row.job_id for row in guaranteed.jobs}
            for row in others:
                if row.by_guarantee and row.job_id not in asking:
                    over.setdefault(row.job_id, WITHDRAWN)
        return over

    def _over(
        self,
        rows: Sequence[ExceptionRow],
        queue: PendingQueue,
        started: Callable[[], Iterable[StartedJob]],
        t: int,
    ) -> dict[int, str]:
        """Returns job id -> what ended its exception. An unreadable line may be of any job."""
        waiting = _among(queue.jobs, rows)
        over = {
            row.job_id: TIME_IS_UP
            for row in rows
            if row.until is not None
            and row.until <= t
            and (row.job_id in waiting or not row.by_guarantee)  # else it has started just in time
        }
        since = {row.job_id: row.since for row in rows}
        gone = since.keys() - waiting - over.keys()
        if not gone or queue.malformed:
            return over
        begun = _among(started(), rows)
        with self._store.reading() as view:
            return over | {
                job_id: STARTED
                if job_id in begun or view.runs.has_runs_of(job_id, since[job_id])
                else LEFT
                for job_id in gone
            }

    def _change(self, over: Mapping[int, str], new: Collection[ExceptionRow], t: int) -> None:
        def change(transaction: Transaction) -> None:
            transaction.orders.end_exceptions(over, t)
            transaction.orders.put_exceptions(new)

        self._store.transact(change)
        for job_id, by in over.items():
            log.info("an exception is over", job=job_id, why=by)
        for row in new:
            log.info("a guarantee is asked for", **_in_log(row))


def _among(jobs: Iterable[PendingJob | StartedJob], rows: Iterable[ExceptionRow]) -> set[int]:
    """Returns the numbers of exceptions that mean any of some jobs."""
    numbers = {(job.job_id, job.array_job_id) for job in jobs}
    own, arrays = {one for one, _ in numbers}, {array for _, array in numbers}
    return {
        row.job_id
        for row in rows
        if row.job_id in own or (row.is_of_array and row.job_id in arrays)
    }


def _moved_to(
    pending: Sequence[PendingJob], queue: PendingQueue, rows: Sequence[ExceptionRow]
) -> list[ExceptionRow]:
    """Returns the exceptions of other ledgers whose jobs all wait among a ledger's.

    Somebody has changed the partition, or the configuration has other pools.
    """
    if not rows:
        return []
    own = {job.job_id for job in pending}
    here = _among(pending, rows)
    here -= _among((job for job in queue.jobs if job.job_id not in own), rows)
    return [row for row in rows if row.job_id in here]


_RESULTS = {STARTED: KEPT, TIME_IS_UP: BROKEN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guaranteed:
    """The jobs that guarantees put first.

    Attributes:
        jobs: as exceptions that begin now, for those that have none yet.
        parts: arrays, and how many of their tasks go first as soon as they are jobs of their own.
        started: numbers of jobs and arrays of which a run was not known in the last cycle.
    """

    jobs: Sequence[ExceptionRow] = ()
    parts: Sequence[tuple[PendingJob, int]] = ()
    started: Collection[int] = ()


def split_off(
    slurm: Slurm,
    parts: Iterable[tuple[PendingJob, int]],
    fresh: Collection[str],
    check: Callable[[], float],
) -> None:
    """Lets Slurm make jobs of their own of the first tasks of arrays, by writing what they have.

    Else all tasks would go first, before those of other organizations that may.

    Args:
        slurm: where the arrays wait.
        parts: arrays, and how many tasks.
        fresh: targets of which the site factor has changed since the queue was read.
        check: as the port `Slurm` has it.

    Raises:
        SlurmUnavailableError: Slurm went away; the next cycle does it.
    """
    factors = {
        first_tasks(job.target, count): job.site_factor
        for job, count in parts
        if job.site_factor is not None and job.target not in fresh
    }
    if factors:
        slurm.write(SITE_FACTOR.name, factors, check)


@dataclass(frozen=True, slots=True)
class Followed:
    """The exceptions that last.

    Attributes:
        rows: of them.
        guarantees: organization, and ASKED, KEPT or BROKEN -> how many of its guarantees were.
    """

    rows: Sequence[ExceptionRow] = ()
    guarantees: Mapping[tuple[str, str], int] = field(default_factory=dict)


def _in_log(row: ExceptionRow) -> dict[str, object]:
    return {
        "job": visible(row.label),
        "by": row.user,
        "why": row.reason,
        "before": "all" if row.before_all else row.organization,
    }
