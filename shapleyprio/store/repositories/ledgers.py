"""A ledger: its watermark and entries, who holds what, and the corrections of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from sqlalchemy import select

from shapleyprio.fairness.ledger import Entry
from shapleyprio.fairness.tenure import Kind, Tenure, Tenures
from shapleyprio.fairness.utility import Moments
from shapleyprio.store.rows.accounting import CorrectionRow, Watermark
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import correction, earlier_ledger, ledger, tenure, watermark

_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}


class LedgersView(Scope):
    """Reads a ledger."""

    def entries(self, *, earlier: bool = False) -> dict[tuple[str, str], Entry]:
        """Returns (organization, owner) -> moments, to make a Ledger of.

        Args:
            earlier: of what was executed before the cluster's stay in its pool.
        """
        table = earlier_ledger if earlier else ledger
        rows = self._connection.execute(self._rows(table))
        return {
            (organization, owner): Entry(Moments(*moments[:3]), Moments(*moments[3:]))
            for organization, owner, *moments in rows
        }

    def tenures(self) -> Tenures:
        """Returns the history of ownership."""
        rows = self._connection.execute(
            select(tenure).where(self._here(tenure)).order_by(*tenure.primary_key)
        )
        return Tenures(
            Tenure(_KINDS[row.kind], row.name, row.organization, row.since, row.until)
            for row in rows
        )

    def watermark(self) -> Watermark | None:
        """Returns how far the accounts have come; None before the first time."""
        return self._read_one(Watermark, self._rows(watermark))

    def corrections(self) -> list[CorrectionRow]:
        """Returns all that was ever corrected, the oldest first."""
        key = (correction.c.number, correction.c.kind, correction.c.name)
        return self._read(CorrectionRow, self._rows(correction).order_by(*key))

    def next_correction(self) -> int:
        """Returns the number for the next correction; they count up from 1."""
        return self._last(correction.c.number) + 1


class Ledgers(LedgersView):
    """Writes a ledger."""

    def save_entries(
        self, entries: Mapping[tuple[str, str], Entry], *, earlier: bool = False
    ) -> None:
        """Stores entries of the ledger, in place of those of the same pairs.

        Args:
            entries: (organization, owner) -> moments.
            earlier: of what was executed before the cluster's stay in its pool.
        """
        rows = [
            (*pair, *values_of(entry.total).values(), *values_of(entry.folded).values())
            for pair, entry in entries.items()
        ]
        table = earlier_ledger if earlier else ledger
        names = [str(column.key) for column in columns(table)]
        self._replace(table, [dict(zip(names, row, strict=True)) for row in rows])

    def save_tenures(self, histories: Mapping[tuple[Kind, str], Sequence[Tenure]]) -> None:
        """Makes rows the whole history of a node, an account or a partition.

        Args:
            histories: (kind, name) -> rows, oldest first.
        """
        self._delete(tenure, [{"kind": kind, "name": name} for kind, name in histories])
        rows = [
            {**values_of(row), "number": number}
            for history in histories.values()
            for number, row in enumerate(history)
        ]
        self._insert(tenure, rows)

    def save_watermark(self, value: Watermark) -> None:
        """Stores how far the accounts have come."""
        self._replace(watermark, [values_of(value)])

    def save_corrections(self, rows: Iterable[CorrectionRow]) -> None:
        """Stores what one correction changed."""
        self._insert(correction, [values_of(row) for row in rows])
