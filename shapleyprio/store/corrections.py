"""Corrections of ownership, on record."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import func, select

from shapleyprio.store.rows import CorrectionRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import correction


class CorrectionsView(Scope):
    """Reads corrections."""

    def corrections(self) -> list[CorrectionRow]:
        """Returns all that was ever corrected, the oldest first."""
        query = select(*columns(correction)).where(self._here(correction))
        key = (correction.c.number, correction.c.kind, correction.c.name)
        return self._read(CorrectionRow, query.order_by(*key))

    def next_correction(self) -> int:
        """Returns the number for the next correction; they count up from 1."""
        last = select(func.max(correction.c.number)).where(self._here(correction))
        return (self._connection.execute(last).scalar() or 0) + 1


class Corrections(CorrectionsView):
    """Writes corrections; they are few, and never pruned."""

    def save_corrections(self, rows: Iterable[CorrectionRow]) -> None:
        """Stores what one correction changed."""
        self._insert(correction, [values_of(row) for row in rows])
