"""What the accounts are made of: ledger, tenures, progress, and lines that could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import get_args

from sqlalchemy import delete, func, select

from shapleyprio.fairness.ledger import Entry
from shapleyprio.fairness.tenure import Kind, Tenure, Tenures
from shapleyprio.fairness.utility import Moments
from shapleyprio.slurm.port import Malformed
from shapleyprio.store.rows import KeptAside, Progress
from shapleyprio.store.scope import KEYS_AT_ONCE, Scope, batches, columns, values_of
from shapleyprio.store.tables import ledger, progress, refused, tenure

_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}


class BooksView(Scope):
    """Reads the accounts."""

    def ledger_entries(self) -> dict[tuple[str, str], Entry]:
        """(organization, owner) -> moments, to make a Ledger of."""
        rows = self._connection.execute(select(*columns(ledger)).where(self._here(ledger)))
        return {
            (organization, owner): Entry(Moments(*moments[:3]), Moments(*moments[3:]))
            for organization, owner, *moments in rows
        }

    def tenures(self) -> Tenures:
        """The history of ownership."""
        rows = self._connection.execute(
            select(tenure).where(self._here(tenure)).order_by(*tenure.primary_key)
        )
        return Tenures(
            Tenure(_KINDS[row.kind], row.name, row.organization, row.since, row.until)
            for row in rows
        )

    def progress(self) -> Progress | None:
        """How far the accounts have come; None before the first time."""
        rows = self._read(Progress, select(*columns(progress)).where(self._here(progress)))
        return rows[0] if rows else None

    def kept_aside(self, limit: int = 20) -> list[KeptAside]:
        """Lines that could not be read, those seen last first."""
        rows = self._connection.execute(
            select(refused)
            .where(self._here(refused))
            .order_by(refused.c.last_seen.desc(), refused.c.digest)
            .limit(limit)
        )
        return [
            KeptAside(
                line=Malformed(row.source, row.text, row.reason),
                first_seen=row.first_seen,
                last_seen=row.last_seen,
                times=row.times,
            )
            for row in rows
        ]

    def kept_aside_count(self) -> int:
        """How many different lines could not be read."""
        query = select(func.count()).select_from(refused).where(self._here(refused))
        return self._connection.execute(query).scalar_one()


class Books(BooksView):
    """Writes the accounts."""

    def save_ledger_entries(self, entries: Mapping[tuple[str, str], Entry]) -> None:
        """Makes these entries the whole ledger."""
        self._connection.execute(delete(ledger).where(self._here(ledger)))
        self._insert(
            ledger,
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

    def save_tenures(self, kind: Kind, name: str, rows: Sequence[Tenure]) -> None:
        """Makes these rows, oldest first, the whole history of a node or an account."""
        self._delete(tenure, [{"kind": kind, "name": name}])
        self._insert(tenure, [{**values_of(row), "number": n} for n, row in enumerate(rows)])

    def save_progress(self, value: Progress) -> None:
        """Stores how far the accounts have come."""
        self._replace(progress, [values_of(value)])

    def keep_aside(self, lines: Iterable[Malformed], at: int) -> int:
        """Keeps lines that could not be read, each once, with how often it was met.

        Args:
            lines: as met.
            at: now.

        Returns:
            How many were not known.
        """
        met: dict[str, Malformed] = {}
        times: Counter[str] = Counter()
        for line in lines:
            digest = _digest(line)
            met[digest] = line
            times[digest] += 1
        new = 0
        for digests in batches(met, KEYS_AT_ONCE):
            known = {
                row.digest: row
                for row in self._connection.execute(
                    select(refused).where(self._here(refused), refused.c.digest.in_(digests))
                )
            }
            new += len(digests) - len(known)
            self._replace(
                refused,
                [
                    {
                        "digest": digest,
                        **values_of(met[digest]),
                        "first_seen": known[digest].first_seen if digest in known else at,
                        "last_seen": at,
                        "times": times[digest] + (known[digest].times if digest in known else 0),
                    }
                    for digest in digests
                ],
            )
        return new


def _digest(line: Malformed) -> str:
    return sha256(f"{line.source}\0{line.text}".encode("utf-8", "backslashreplace")).hexdigest()
