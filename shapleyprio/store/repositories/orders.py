"""What admins order: pauses, and jobs that go first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import ColumnElement, select, update

from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.store.rows.cycles import GUARANTEE, ExceptionRow, PauseRow
from shapleyprio.store.scope import Scope, columns, of_cluster, values_of
from shapleyprio.store.tables import exception, pause


class AdminOrdersView(Scope):
    """Reads pauses and exceptions."""

    def pause(self) -> PauseRow | None:
        """Returns the pause that lasts; None if nothing is paused."""
        return self._read_one(PauseRow, self._rows(pause, pause.c.until.is_(None)))

    def pauses(self, since: int = 0) -> list[PauseRow]:
        """Returns the pauses that lasted at `since` or began later, the oldest first."""
        rows = self._read(PauseRow, self._rows(pause).order_by(pause.c.since))
        return [row for row in rows if row.until is None or row.until > since]

    def exceptions(self, since: int | None = None) -> list[ExceptionRow]:
        """Returns the exceptions that last, those that were ordered first at the begin.

        Args:
            since: second; also those that had not ended by then.
        """
        lasting = exception.c.ended.is_(None)
        wanted = lasting if since is None else lasting | (exception.c.ended > since)
        query = self._rows(exception, wanted)
        return self._read(ExceptionRow, query.order_by(exception.c.since, exception.c.job_id))

    def ordered(self) -> list[ExceptionRow]:
        """Returns the exceptions that admins have ordered and that last, in all ledgers."""
        query = select(*columns(exception)).where(
            self._of_cluster(), exception.c.ended.is_(None), exception.c.user != GUARANTEE
        )
        return self._read(ExceptionRow, query.order_by(exception.c.since, exception.c.job_id))

    def _of_cluster(self) -> ColumnElement[bool]:
        return of_cluster(exception, cluster_behind(self.cluster))


class AdminOrders(AdminOrdersView):
    """Writes pauses and exceptions."""

    def begin_pause(self, row: PauseRow) -> PauseRow | None:
        """Begins a pause, unless one lasts: returns that, and leaves it as it is."""
        lasting = self.pause()
        if lasting is None:
            self._replace(pause, [values_of(row)])
        return lasting

    def end_pause(self, until: int, user: str) -> PauseRow | None:
        """Ends the pause that lasts, and returns it as it was; None if nothing is paused."""
        lasting = self.pause()
        if lasting is not None:
            self._connection.execute(
                update(pause)
                .where(self._here(pause), pause.c.since == lasting.since)
                .values(until=max(until, lasting.since), resumed_by=user)
            )
        return lasting

    def put_pauses(self, rows: Iterable[PauseRow]) -> None:
        """Stores pauses, in place of those that began at the same seconds."""
        self._replace(pause, [values_of(row) for row in rows])

    def _prune_pauses(self, before: int) -> int:
        """Deletes pauses that had ended by then; returns how many rows."""
        since = pause.c.since  # for which there is an index
        return self._delete_some(pause, (since < before) & (pause.c.until < before), since)

    def begin_exception(self, row: ExceptionRow) -> ExceptionRow | None:
        """Begins an exception, unless an admin has ordered one for the job, in whatever ledger.

        Returns:
            that one, and leaves it as it is.
        """
        lasting = self._of(row.job_id)
        if lasting is not None and lasting.by_guarantee:
            self.end_exception(row.job_id, row.since, f"{row.user} has put it first")
            lasting = None
        if lasting is None:
            self._replace(exception, [values_of(row)])
        return lasting

    def end_exception(self, job_id: int, at: int, by: str) -> ExceptionRow | None:
        """Ends the exception of a job, and returns it as it was; None if there is none."""
        lasting = self._of(job_id)
        if lasting is not None:
            self._change(lasting, ended=max(at, lasting.since), ended_by=by)
        return lasting

    def take_over(self, rows: Iterable[ExceptionRow]) -> None:
        """Makes exceptions of another ledger those of this one: their jobs wait here now."""
        for row in rows:
            self._change(row, cluster=self.cluster)

    def end_exceptions(self, over: Mapping[int, str], at: int) -> None:
        """Ends the exceptions of some jobs: job id -> what ended each."""
        for row in self.exceptions() if over else ():
            if row.job_id in over:
                self._change(row, ended=max(at, row.since), ended_by=over[row.job_id])

    def note_passed(self, row: ExceptionRow, passed: Mapping[str, int]) -> None:
        """Notes before how many jobs of whom an exception has put its job."""
        self._change(row, passed=passed)

    def put_exceptions(self, rows: Iterable[ExceptionRow]) -> None:
        """Stores exceptions, in place of those of the same jobs and seconds."""
        self._replace(exception, [values_of(row) for row in rows])

    def _of(self, job_id: int) -> ExceptionRow | None:
        lasting = [*self.ordered(), *self.exceptions()]
        return next((row for row in lasting if row.job_id == job_id), None)

    def _change(self, row: ExceptionRow, **values: object) -> None:
        self._connection.execute(
            update(exception)
            .where(
                self._of_cluster(),
                exception.c.job_id == row.job_id,
                exception.c.since == row.since,
                exception.c.user == row.user,
            )
            .values(**values)
        )

    def _prune_exceptions(self, before: int) -> int:
        """Deletes exceptions that had ended by then; returns how many rows."""
        since = exception.c.since  # for which there is an index
        return self._delete_some(exception, (since < before) & (exception.c.ended < before), since)

    def prune(self, before: int) -> int:
        """Deletes what was over by then, `PRUNED_AT_ONCE` of each kind; returns how many rows."""
        return self._prune_pauses(before) + self._prune_exceptions(before)
