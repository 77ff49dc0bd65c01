"""Runs with their allocations: how long they had waited, and what they did after their end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, func, select, tuple_

from shapleyprio.fairness.runs import Run, RunKey
from shapleyprio.fairness.tenure import NOBODY, Allocation
from shapleyprio.store.rows.accounting import AllocatedRun, UserAfterEnd, Wait, WorkAfterEnd
from shapleyprio.store.scope import KEYS_AT_ONCE, ROWS_AT_ONCE, Scope, batches, columns, values_of
from shapleyprio.store.tables import (
    allocation,
    run,
    work_after_end,
    work_after_end_progress,
)

_RUN = columns(run)
_KEY_OF_RUN, _OF_RUN = _RUN[:3], [str(column.key) for column in _RUN[3:]]
_fields_of = attrgetter(*_OF_RUN)
_KEY_OF_ALLOCATION, _ALLOCATION = columns(allocation)[:3], columns(allocation)[4:]


class RunsView(Scope):
    """Reads runs."""

    def known(self, keys: Collection[RunKey]) -> dict[RunKey, AllocatedRun]:
        """Returns the stored ones among the runs with these keys."""
        wanted = set(keys)
        found: dict[RunKey, AllocatedRun] = {}
        for ids in batches(sorted({key.job_id for key in wanted}), KEYS_AT_ONCE):
            rows = self._connection.execute(
                select(*_RUN).where(self._here(run), run.c.job_id.in_(ids))
            )
            runs = [item for row in rows if (item := _run_of(row)).key in wanted]
            found.update(
                (item.key, (item, allocations)) for item, allocations in self._placed(runs)
            )
        return found

    def has_runs_of(self, job_id: int, since: int = 0) -> bool:
        """Returns whether any run of the job is stored that began at `since` or later."""
        query = select(run.c.job_id).where(
            self._here(run), run.c.job_id == job_id, run.c.start >= since
        )
        return self._connection.execute(query.limit(1)).first() is not None

    def runs_of(self, job_id: int, since: int) -> Iterator[AllocatedRun]:
        """Yields the runs of a job, or of the tasks of an array, that began at `since` or later."""
        tasks = run.c.label.startswith(f"{job_id}_", autoescape=True)
        query = select(*_RUN).where(
            self._here(run), run.c.start >= since, (run.c.job_id == job_id) | tasks
        )
        yield from self._placed([_run_of(row) for row in self._connection.execute(query)])

    def unfinished(self) -> list[Run]:
        """Returns all runs without an end, in the order of their keys."""
        rows = self._connection.execute(select(*_RUN).where(self._here(run), run.c.end.is_(None)))
        # sorted here: asked to sort, a database may read all runs in order instead of these few
        return sorted((_run_of(row) for row in rows), key=lambda item: item.key)

    def unfinished_allocated(self) -> Iterator[AllocatedRun]:
        """Yields all runs without an end, in the order of their keys."""
        for runs in batches(self.unfinished(), ROWS_AT_ONCE):
            yield from self._placed(runs)

    def runs_ended_in(self, after: int, until: int, most: int | None = None) -> list[Run]:
        """Returns runs with an end in (after, until], by end; of more than so many the first."""
        rows = self._connection.execute(
            select(*_RUN)
            .where(self._here(run), run.c.end > after, run.c.end <= until)
            .order_by(run.c.end, *_KEY_OF_RUN)
            .limit(most)
        )
        return [_run_of(row) for row in rows]

    def runs_alive_after(self, second: int) -> Iterator[AllocatedRun]:
        """Yields runs with no end or an end after the second: the unfinished first, then by end.

        Runs may be put, with the same end, while this is read.
        """
        yield from self.unfinished_allocated()
        yield from self._pages_of_runs(run.c.end, *_KEY_OF_RUN, after=(second,))

    def all_runs(self) -> Iterator[AllocatedRun]:
        """Yields all runs in the order of their keys; runs may be put while this is read."""
        yield from self._pages_of_runs(*_KEY_OF_RUN)

    def allocations_with_event_between(self, low: int, high: int) -> Iterator[Allocation]:
        """Yields allocations with a begin or an end in (low, high], each once."""
        begins = (allocation.c.begin > low) & (allocation.c.begin <= high)
        ends = (allocation.c.end > low) & (allocation.c.end <= high)
        key = (*_KEY_OF_ALLOCATION, allocation.c.number)
        for first, condition in (  # two queries, an index for each
            (allocation.c.begin, begins),
            (allocation.c.end, ends & ~begins),
        ):
            query = select(*_ALLOCATION).where(self._here(allocation), condition)
            for rows in self._pages(query, first, *key, after=(low,)):
                yield from (Allocation(*row[: len(_ALLOCATION)]) for row in rows)

    def _pages_of_runs(
        self, *order: ColumnElement[Any], after: tuple[Any, ...] = ()
    ) -> Iterator[AllocatedRun]:
        for rows in self._pages(select(*_RUN).where(self._here(run)), *order, after=after):
            yield from self._placed([_run_of(row) for row in rows])

    def _pages(
        self, query: Select[Any], *order: ColumnElement[Any], after: tuple[Any, ...] = ()
    ) -> Iterator[Sequence[Row[Any]]]:
        """Reads page after page, each from behind the last row of the one before.

        A server counts the time for which rows of a longer answer wait for us as the statement's.

        Args:
            query: what to read; the columns of the order come after its own.
            order: columns.
            after: values of the first ones, which those of all rows read are behind.
        """
        query = query.add_columns(*order).order_by(*order).limit(ROWS_AT_ONCE)
        last = after
        while True:
            page = query
            if last:  # not every database finds by a comparison of rows where to begin in an index
                behind = tuple_(*order[: len(last)]) > tuple_(*last)
                page = query.where(order[0] >= last[0], behind)
            rows = self._connection.execute(page).all()
            if not rows:
                return
            last = tuple(rows[-1][-len(order) :])
            yield rows

    def _placed(self, runs: list[Run]) -> Iterator[AllocatedRun]:
        """Yields each run with its allocations."""
        allocations: dict[RunKey, list[Allocation]] = {item.key: [] for item in runs}
        for ids in batches(sorted({key.job_id for key in allocations}), KEYS_AT_ONCE):
            rows = self._connection.execute(
                select(*_KEY_OF_ALLOCATION, *_ALLOCATION)
                .where(self._here(allocation), allocation.c.job_id.in_(ids))
                .order_by(*_KEY_OF_ALLOCATION, allocation.c.number)
            )
            for job_id, submit, start, *values in rows:
                known = allocations.get(RunKey(job_id, submit, start))
                if known is not None:
                    known.append(Allocation(*values))
        for item in runs:
            yield item, tuple(allocations[item.key])

    def waits(self, since: int, until: int | None = None) -> list[Wait]:
        """Returns how long jobs waited that started in [since, until), in any order."""
        same_run = [
            allocation.c[name] == run.c[name] for name in ("cluster", "job_id", "submit", "start")
        ]
        query = (
            select(allocation.c.organization, run.c.partition, run.c.start - run.c.release)
            .join(run, and_(*same_run))
            .where(
                self._here(allocation),
                allocation.c.begin >= since,  # for which there is an index
                allocation.c.number == 0,
                run.c.start >= since,
                run.c.release > 0,
                allocation.c.organization != NOBODY,
            )
        )
        if until is not None:
            query = query.where(run.c.start < until)
        return [Wait(*row) for row in self._connection.execute(query)]

    def users_after_end(self, since: int, until: int, most: int | None) -> list[UserAfterEnd]:
        """Returns users whose runs that ended in [since, until) continued, most first.

        Args:
            since: seconds since the epoch.
            until: likewise.
            most: so many users at most; None for all.
        """
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
        return self._read(WorkAfterEnd, self._rows(table).order_by(*table.primary_key))

    def work_after_end_until(self) -> int | None:
        """Returns up to which end of runs Slurm was asked; None before the first time."""
        query = select(work_after_end_progress.c.until)
        return self._connection.execute(
            query.where(self._here(work_after_end_progress))
        ).scalar_one_or_none()


class Runs(RunsView):
    """Writes runs."""

    def put(self, runs: Iterable[AllocatedRun], stored: Collection[RunKey] | None = None) -> None:
        """Stores runs; one with a known key is replaced, with its allocations as a whole.

        Args:
            runs: to store.
            stored: keys among which are those of these runs that are known; None if the store is
                to look for them.
        """
        old = None if stored is None else set(stored)
        for batch in batches(runs, KEYS_AT_ONCE):
            placed = {item[0].key: item for item in batch}
            known = self._stored(placed) if old is None else placed.keys() & old
            self._delete(run, [key._asdict() for key in known])
            self._insert(run, [_run_values(item) for item, _ in placed.values()])
            self._insert(
                allocation,
                [
                    {**key._asdict(), "number": number, **values_of(item)}
                    for key, (_, allocations) in placed.items()
                    for number, item in enumerate(allocations)
                ],
            )

    def remove(self, keys: Iterable[RunKey]) -> None:
        """Deletes runs and their allocations."""
        self._delete(run, [key._asdict() for key in keys])

    def prunable_until(self, before: int) -> int:
        """Returns by when those of the runs that ended by then ended that one transaction prunes.

        Args:
            before: second, also what is returned if all of them can be pruned at once.
        """
        last: int | None = self._of_some(run, run.c.end <= before, run.c.end)
        return before if last is None else last

    def prune(self, before: int) -> int:
        """Deletes the runs that ended by then, and their allocations; returns how many runs."""
        return self._clear(run, run.c.end <= before)

    def _stored(self, keys: Collection[RunKey]) -> Iterator[RunKey]:
        for ids in batches(sorted({key.job_id for key in keys}), KEYS_AT_ONCE):
            rows = self._connection.execute(
                select(*_KEY_OF_RUN).where(self._here(run), run.c.job_id.in_(ids))
            )
            yield from (key for row in rows if (key := RunKey(*row)) in keys)

    def save_work_after_end(self, rows: Iterable[WorkAfterEnd], *, asked_until: int) -> None:
        """Stores what was found of all runs that ended by then and after the time before."""
        self._replace(work_after_end, [values_of(row) for row in rows])
        self._clear(work_after_end_progress)
        self._insert(work_after_end_progress, [{"until": asked_until}])

    def prune_work_after_end(self, before: int) -> int:
        """Deletes that of runs which ended before; returns how many rows."""
        ended = work_after_end.c.end
        return self._delete_some(work_after_end, ended < before, ended)


def _run_of(row: Sequence[Any]) -> Run:
    return Run(key=RunKey(*row[:3]), **dict(zip(_OF_RUN, row[3:], strict=False)))


def _run_values(item: Run) -> dict[str, Any]:
    return {**item.key._asdict(), **dict(zip(_OF_RUN, _fields_of(item), strict=True))}
