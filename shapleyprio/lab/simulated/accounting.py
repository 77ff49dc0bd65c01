"""The simulated accounting database, and the changes on their way to it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from shapleyprio.fairness.runs import JobRecord

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
