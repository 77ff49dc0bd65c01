"""Exceptions: jobs that go first, for an admin has said so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import select, update

from shapleyprio.store.rows import ExceptionRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import exception


class ExceptionsView(Scope):
    """Reads exceptions."""

    def exceptions(self, since: int | None = None) -> list[ExceptionRow]:
        """Returns the exceptions that last, those that were ordered first at the begin.

        Args:
            since: second; also those that had not ended by then.
        """
        query = select(*columns(exception)).where(self._here(exception))
        lasting = exception.c.ended.is_(None)
        query = query.where(lasting if since is None else lasting | (exception.c.ended > since))
        return self._read(ExceptionRow, query.order_by(exception.c.since, exception.c.job_id))


class Exceptions(ExceptionsView):
    """Writes exceptions."""

    def begin_exception(self, row: ExceptionRow) -> ExceptionRow | None:
        """Begins an exception, unless the job has one: returns that, and leaves it as it is."""
        lasting = self._of(row.job_id)
        if lasting is None:
            self._replace(exception, [values_of(row)])
        return lasting

    def end_exception(self, job_id: int, at: int, by: str) -> ExceptionRow | None:
        """Ends the exception of a job, and returns it as it was; None if there is none."""
        lasting = self._of(job_id)
        if lasting is not None:
            self._change(lasting, ended=max(at, lasting.since), ended_by=by)
        return lasting

    def note_passed(self, row: ExceptionRow, passed: Mapping[str, int]) -> None:
        """Notes before how many jobs of whom an exception has put its job."""
        self._change(row, passed=passed)

    def put_exceptions(self, rows: Iterable[ExceptionRow]) -> None:
        """Stores exceptions, in place of those of the same jobs and seconds."""
        self._replace(exception, [values_of(row) for row in rows])

    def _of(self, job_id: int) -> ExceptionRow | None:
        return next((row for row in self.exceptions() if row.job_id == job_id), None)

    def _change(self, row: ExceptionRow, **values: object) -> None:
        self._connection.execute(
            update(exception)
            .where(
                self._here(exception),
                exception.c.job_id == row.job_id,
                exception.c.since == row.since,
            )
            .values(**values)
        )

    def _prune_exceptions(self, before: int) -> int:
        """Deletes exceptions that had ended by then; returns how many rows."""
        since = exception.c.since  # for which there is an index
        return self._delete_some(exception, (since < before) & (exception.c.ended < before), since)
