"""What the table of points has given to new jobs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from sqlalchemy import delete, select

from shapleyprio.store.rows import PublishedPoints
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import published_points

GIVEN_REMEMBERED = 1000
"""Points that may still stand at jobs: many more than there are ranks."""


class PublishingView(Scope):
    """Reads what the table of points has given."""

    def published_points(self) -> PublishedPoints | None:
        """Returns what the table of points has given; None if there never was one."""
        query = select(*columns(published_points)).where(self._here(published_points))
        return next(iter(self._read(PublishedPoints, query)), None)


class Publishing(PublishingView):
    """Writes what the table of points gives."""

    def will_publish(self, path: Path, points: Collection[int]) -> None:
        """Notes, before it is written, what a table gives from now on.

        Args:
            path: of the table.
            points: that it gives.
        """
        before = self.published_points()
        known = () if before is None else before.given
        new = sorted(set(points).difference(known))
        self._save(
            before,
            PublishedPoints(
                path=str(path),
                given=(*known, *new)[-GIVEN_REMEMBERED:],
                since=None if before is None else before.since,
                until=None,
            ),
        )

    def is_published(self, second: int) -> None:
        """Notes that the table is there; where it was before, since when stays as it is."""
        before = self.published_points()
        if before is not None and before.since is None:
            self._save(before, replace(before, since=second))

    def is_withdrawn(self, second: int) -> None:
        """Notes that jobs submitted later than that get nothing from a table."""
        before = self.published_points()
        if before is not None and before.until is None:
            self._save(before, replace(before, since=None, until=second))

    def save_published_points(self, row: PublishedPoints | None) -> None:
        """Makes this all that is known of it; None for nothing."""
        before = self.published_points()
        if row is not None:
            self._save(before, row)
        elif before is not None:
            self._connection.execute(delete(published_points).where(self._here(published_points)))

    def _save(self, before: PublishedPoints | None, row: PublishedPoints) -> None:
        if row != before:
            self._replace(published_points, [values_of(row)])
