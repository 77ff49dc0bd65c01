"""Lines of Slurm's that could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

from sqlalchemy import func, select

from shapleyprio.slurm.port import Malformed
from shapleyprio.store.rows import QuarantinedLine
from shapleyprio.store.scope import KEYS_AT_ONCE, Scope, batches, values_of
from shapleyprio.store.tables import quarantined_line


class QuarantineView(Scope):
    """Reads quarantined lines."""

    def quarantined(self, limit: int = 20) -> list[QuarantinedLine]:
        """Returns lines that could not be read, those seen last first."""
        rows = self._connection.execute(
            select(quarantined_line)
            .where(self._here(quarantined_line))
            .order_by(quarantined_line.c.last_seen.desc(), quarantined_line.c.digest)
            .limit(limit)
        )
        return [
            QuarantinedLine(
                line=Malformed(row.source, row.text, row.reason),
                first_seen=row.first_seen,
                last_seen=row.last_seen,
                times=row.times,
            )
            for row in rows
        ]

    def quarantined_count(self) -> int:
        """Counts the different lines that could not be read."""
        query = (
            select(func.count()).select_from(quarantined_line).where(self._here(quarantined_line))
        )
        return self._connection.execute(query).scalar_one()


class Quarantine(QuarantineView):
    """Writes quarantined lines."""

    def quarantine(self, lines: Iterable[Malformed], at: int) -> int:
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
                    select(quarantined_line).where(
                        self._here(quarantined_line), quarantined_line.c.digest.in_(digests)
                    )
                )
            }
            new += len(digests) - len(known)
            self._replace(
                quarantined_line,
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
