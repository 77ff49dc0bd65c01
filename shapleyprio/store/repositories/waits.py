"""How long jobs waited, and how long those wait that have not started."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import and_, delete, select

from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.store.rows import PendingJobs, Wait
from shapleyprio.store.scope import Scope
from shapleyprio.store.tables import allocation, pending_jobs, run


class WaitRecordsView(Scope):
    """Reads waits."""

    def pending_jobs(self) -> list[PendingJobs]:
        """Returns the jobs that waited at the last cycle, by organization and partition."""
        query = select(pending_jobs).where(self._here(pending_jobs))
        rows = query.order_by(pending_jobs.c.organization, pending_jobs.c.partition_name)
        return [
            PendingJobs(
                organization=row.organization,
                partition=row.partition_name,
                jobs=row.jobs,
                since=row.since,
            )
            for row in self._connection.execute(rows)
        ]

    def waits(self, since: int, until: int | None = None) -> list[Wait]:
        """Returns how long jobs waited that started in [since, until), in any order."""
        same_run = [
            allocation.c[name] == run.c[name] for name in ("cluster", "job_id", "submit", "start")
        ]
        query = (
            select(allocation.c.organization, run.c.partition_name, run.c.start - run.c.released)
            .join(run, and_(*same_run))
            .where(
                self._here(allocation),
                allocation.c.begin >= since,  # for which there is an index
                allocation.c.number == 0,
                run.c.start >= since,
                run.c.released > 0,
                allocation.c.organization != NOBODY,
            )
        )
        if until is not None:
            query = query.where(run.c.start < until)
        return [Wait(*row) for row in self._connection.execute(query)]


class WaitRecords(WaitRecordsView):
    """Writes which jobs wait."""

    def save_pending_jobs(self, rows: Iterable[PendingJobs]) -> None:
        """Stores which jobs wait, in place of those of the cycle before."""
        self._connection.execute(delete(pending_jobs).where(self._here(pending_jobs)))
        self._insert(
            pending_jobs,
            [
                {
                    "organization": row.organization,
                    "partition_name": row.partition,
                    "jobs": row.jobs,
                    "since": row.since,
                }
                for row in rows
            ],
        )
