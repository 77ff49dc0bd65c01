"""A simulated job as users and the controller know it, and the rows of accounting about it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.slurm.port import PendingJob, StartedJob
from shapleyprio.slurm.text.queue import task_list

WAITS = "Priority"
HELD = "JobHeldUser"
NOT_YET = "BeginTime"
DEPENDS = "Dependency"
TOO_MANY_TASKS = "JobArrayTaskLimit"
TOO_MANY_JOBS = "AssocGrpJobsLimit"
NOT_ELIGIBLE = frozenset({HELD, DEPENDS})
BEYOND_A_LIMIT = frozenset({TOO_MANY_TASKS, TOO_MANY_JOBS})

Rank = tuple[int, int, int]
"""Orders jobs: the smallest starts next."""


@dataclass(slots=True, kw_only=True)
class Job:
    """A job as the controller knows it.

    Attributes:
        processing_time: seconds it will execute, if its limit allows.
        limit: seconds after which it is stopped, None for never.
        array_id: id of the array it belongs to, None for a plain job.
        tasks: indices of the tasks it stands for: all that wait as one, or its own.
        at_once: how many tasks of its array may run at the same time; None for all.
        eligible: second from which it can start and its age counts, unless it is held.
        association: points of its association when the priority was last computed.
        fixed: the priority that somebody has set, so that none is computed; None if nobody has.
        after: jobs and arrays that have to end before it may start.
        reason: why it waits; only a job that waits for its turn may start.
        execution: how often it was requeued.
        start: of the current execution, None while it waits.
        ends: when it will end if nothing happens to it, None while it executes nothing.
        suspended: seconds of this execution it was suspended, up to suspended_since.
        suspended_since: second of the current suspension, None unless suspended.
        allocation: node -> processors.
    """

    job_id: int
    account: str
    user: str
    partition: str
    qos: str
    processors: int
    processing_time: int
    limit: int | None
    submit: int
    nice: int
    site_factor: int = 0
    association: int = 0
    priority: int = 0
    fixed: int | None = None
    array_id: int | None = None
    tasks: tuple[int, ...] = ()
    at_once: int | None = None
    eligible: int
    after: tuple[int, ...] = ()
    reason: str = WAITS
    execution: int = 0
    start: int | None = None
    ends: int | None = None
    suspended: int = 0
    suspended_since: int | None = None
    allocation: dict[str, int] = field(default_factory=dict)

    @property
    def rank(self) -> Rank:
        """Its key in the order of the queue."""
        return (-self.priority, self.submit, self.job_id)

    @property
    def label(self) -> str:
        """The name users know it by."""
        if self.array_id is None:
            return str(self.job_id)
        begun = self.start is not None or self.execution > 0
        if begun or self.job_id != self.array_id:
            return f"{self.array_id}_{self.tasks[0]}"
        return f"{self.array_id}_[{task_list(self.tasks)}]"

    def split_off(self, task: int, job_id: int) -> Job:
        """Takes one task out of an array that waits, as a job of its own."""
        at = self.tasks.index(task)
        self.tasks = self.tasks[:at] + self.tasks[at + 1 :]
        return replace(self, job_id=job_id, tasks=(task,))

    def will_execute(self) -> int:
        """Returns the seconds that an execution takes."""
        return self.processing_time if self.limit is None else min(self.processing_time, self.limit)

    def executed(self, now: int) -> int:
        """Returns the seconds that this execution has executed until now."""
        if self.start is None:
            return 0
        until = now if self.suspended_since is None else self.suspended_since
        return until - self.start - self.suspended

    def record(self, state: str, now: int, end: int | None = None) -> JobRecord:
        """Returns its row in the accounting, written now."""
        at = now if end is None else end
        executed = self.executed(at)
        return JobRecord(
            job_id=self.job_id,
            label=self.label,
            account=self.account,
            user=self.user,
            partition=self.partition,
            submit=self.submit,
            eligible=None if self.start is None and self.reason in NOT_ELIGIBLE else self.eligible,
            start=self.start,
            end=end,
            limit=self.limit,
            elapsed=executed,
            suspended=0 if self.start is None else at - self.start - executed,
            state=state,
            nodes=tuple(self.allocation),
            processors=sum(self.allocation.values()),
        )

    def started(self) -> StartedJob:
        """Returns its line in the list of jobs that have started."""
        return StartedJob(
            job_id=self.job_id,
            array_job_id=self.job_id if self.array_id is None else self.array_id,
            label=self.label,
            account=self.account,
            submit=self.submit,
        )

    def pending(self) -> PendingJob:
        """Returns its line in the list of waiting jobs."""
        label = str(self.job_id) if self.array_id is None else self.label
        computed = self.reason == WAITS and self.fixed is None
        return PendingJob(
            job_id=self.job_id,
            array_job_id=self.job_id if self.array_id is None else self.array_id,
            target=label,
            label=label,
            account=self.account,
            user=self.user,
            partition=self.partition,
            qos=self.qos,
            reason=self.reason,
            submit=self.submit,
            eligible=None if self.reason in NOT_ELIGIBLE else self.eligible,
            limit=self.limit,
            tasks=max(len(self.tasks), 1),
            at_once=self.at_once if len(self.tasks) > 1 else None,
            priority=self.priority,
            nice=self.nice,
            site_factor=self.site_factor if computed else None,
            association=self.association if computed else None,
            processors=self.processors,
            is_fixed=self.reason == WAITS and self.fixed is not None,
        )


RowKey = tuple[int, int]
"""Job id and how often it had been requeued."""


class Accounting:
    """Every execution's row; what changes reaches it in order, after a delay, while it is up.

    Rows without an end and rows in the order of their ends are kept apart, so that looking at
    the last hour costs as much as that hour has rows. Held jobs are returned only
    where their ids are given.
    """

    def __init__(self, delay_seconds: int) -> None:
        self.up = True
        self._delay = delay_seconds
        self._changes: deque[tuple[int, RowKey, JobRecord, bool]] = deque()
        self._rows: dict[int, dict[int, JobRecord]] = {}
        self._open: dict[RowKey, JobRecord] = {}
        self._ends: list[tuple[int, RowKey]] = []

    @property
    def backlog(self) -> int:
        """How many changes have not arrived."""
        return len(self._changes)

    def change(self, key: RowKey, record: JobRecord, now: int, *, hidden: bool = False) -> None:
        """Sends the new state of a row."""
        self._changes.append((now + self._delay, key, record, hidden))

    def return_(self, now: int) -> None:
        """Starts it again; what has piled up takes the usual delay from now."""
        self.up = True
        self._changes = deque(
            (max(due, now + self._delay), key, record, hidden)
            for due, key, record, hidden in self._changes
        )

    def receive(self, now: int) -> None:
        """Receives what has arrived by now."""
        while self.up and self._changes and self._changes[0][0] <= now:
            _, key, record, hidden = self._changes.popleft()
            self._put(key, record, hidden=hidden)

    def window(self, since: int, until: int, now: int) -> list[JobRecord]:
        """Returns the rows of jobs that existed at some time in [since, until] and do not wait."""
        begin = bisect_left(self._ends, since, key=lambda entry: entry[0])
        found = [self._rows[job_id][run] for _, (job_id, run) in self._ends[begin:]]
        found += [_as_of(record, now) for record in self._open.values()]
        return [one for one in found if one.submit <= until and one.state != "PENDING"]

    def of(self, job_ids: Iterable[int], now: int) -> Iterator[JobRecord]:
        """Returns all rows of some jobs."""
        for job_id in job_ids:
            for record in self._rows.get(job_id, {}).values():
                yield _as_of(record, now)

    def purge(self, before: int) -> None:
        """Forgets the rows that ended before a second."""
        last = bisect_left(self._ends, before, key=lambda entry: entry[0])
        for _, (job_id, run) in self._ends[:last]:
            del self._rows[job_id][run]
            if not self._rows[job_id]:
                del self._rows[job_id]
        del self._ends[:last]

    def _put(self, key: RowKey, record: JobRecord, *, hidden: bool) -> None:
        job_id, run = key
        self._rows.setdefault(job_id, {})[run] = record
        self._open.pop(key, None)
        if record.end is None and not hidden:
            self._open[key] = record
        elif record.end is not None:
            insort(self._ends, (record.end, key))


def _as_of(record: JobRecord, now: int) -> JobRecord:
    """Returns a row as it reads now: the time of a job that has not ended goes on."""
    if record.end is not None or record.start is None:
        return record
    if record.state == "SUSPENDED":
        return replace(record, suspended=now - record.start - record.elapsed)
    return replace(record, elapsed=now - record.start - record.suspended)
