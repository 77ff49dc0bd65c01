"""A ledger: its watermark and entries, who holds what, and the corrections of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from sqlalchemy import func, select

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
        rows = self._connection.execute(select(*columns(table)).where(self._here(table)))
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
        rows = self._read(Watermark, select(*columns(watermark)).where(self._here(watermark)))
        return rows[0] if rows else None

    def corrections(self) -> list[CorrectionRow]:
        """Returns all that was ever corrected, the oldest first."""
        query = select(*columns(correction)).where(self._here(correction))
        key = (correction.c.number, correction.c.kind, correction.c.name)
        return self._read(CorrectionRow, query.order_by(*key))

    def next_correction(self) -> int:
        """Returns the number for the next correction; they count up from 1."""
        last = select(func.max(correction.c.number)).where(self._here(correction))
        return (self._connection.execute(last).scalar() or 0) + 1


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
        self._replace(
            earlier_ledger if earlier else ledger,
            [
                {
                    "organization": organization,
                    "owner": owner,
                    "total_processors": entry.total.processors,
                    "total_first": entry.total.first,
                    "total_second": entry.total.second,
                    "folded_processors": entry.folded.processors,
                    "folded_first": entry.folded.first,
                    "folded_second": entry.folded.second,
                }
                for (organization, owner), entry in entries.items()
            ],
        )

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
