"""Work that runs did after their end, and up to which end Slurm was asked for it."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, func, select

from shapleyprio.store.rows import UserAfterEnd, WorkAfterEnd
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import work_after_end, work_after_end_progress


class AfterEndView(Scope):
    """Reads work after ends."""

    def users_after_end(self, since: int, until: int, most: int) -> list[UserAfterEnd]:
        """Returns users whose runs that ended in [since, until) continued, most first."""
        table = work_after_end.c
        processor_seconds = func.sum(table.processor_seconds)
        rows = self._connection.execute(
            select(
                table.user, table.organization, func.count(), processor_seconds, func.max(table.end)
            )
            .where(self._here(work_after_end), table.end >= since, table.end < until)
            .group_by(table.user, table.organization)
            .order_by(processor_seconds.desc(), table.user, table.organization)
            .limit(most)
        )
        return [
            UserAfterEnd(
                user=user,
                organization=organization,
                jobs=jobs,
                processor_seconds=int(seconds),  # MariaDB's sums are decimals
                last=last,
            )
            for user, organization, jobs, seconds, last in rows
        ]

    def work_after_end(self) -> list[WorkAfterEnd]:
        """Returns all that is known, by the runs' keys."""
        table = work_after_end
        query = select(*columns(table)).where(self._here(table)).order_by(*table.primary_key)
        return self._read(WorkAfterEnd, query)

    def work_after_end_until(self) -> int | None:
        """Returns up to which end of runs Slurm was asked; None before the first time."""
        query = select(work_after_end_progress.c.until)
        return self._connection.execute(
            query.where(self._here(work_after_end_progress))
        ).scalar_one_or_none()


class AfterEnd(AfterEndView):
    """Writes work after ends."""

    def save_work_after_end(self, rows: Iterable[WorkAfterEnd], *, asked_until: int) -> None:
        """Stores what was found of all runs that ended by then and after the time before."""
        self._replace(work_after_end, [values_of(row) for row in rows])
        self._connection.execute(
            delete(work_after_end_progress).where(self._here(work_after_end_progress))
        )
        self._insert(work_after_end_progress, [{"until": asked_until}])

    def _prune_work_after_end(self, before: int) -> int:
        """Deletes that of runs which ended before; returns how many rows."""
        ended = work_after_end.c.end
        return self._delete_some(work_after_end, ended < before, ended)
