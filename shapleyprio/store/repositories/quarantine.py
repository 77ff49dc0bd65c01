"""Lines of Slurm's that could not be read.

Users can have a hand in such lines, and make as many different ones as they like. So only a
bounded number is kept, and all others are counted, in one row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

from sqlalchemy import delete, func, select

from shapleyprio.slurm.port import Malformed
from shapleyprio.store.rows import QuarantinedLine
from shapleyprio.store.scope import Scope, values_of
from shapleyprio.store.tables import quarantined_line

MOST_LINES = 1000
"""Different lines that are kept of a cluster."""

MOST_LINES_AFTER_PRUNING = 500
"""So that there is room again for new lines."""

ONLY_COUNTED = Malformed(
    source="quarantine",
    text="further lines, which are only counted",
    reason=f"{MOST_LINES} different lines are kept at most",
)
"""Stands for the lines that are not kept."""

_COUNTER = ""  # in the place of a digest; sorts first


class QuarantineView(Scope):
    """Reads quarantined lines."""

    def quarantined(self, limit: int = 20) -> list[QuarantinedLine]:
        """Returns lines that could not be read, those seen last first.

        One of them may be `ONLY_COUNTED`, with how often lines were met that are not kept.
        """
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
        """Counts what `quarantined` has: kept lines, and one more if others are only counted."""
        query = (
            select(func.count()).select_from(quarantined_line).where(self._here(quarantined_line))
        )
        return self._connection.execute(query).scalar_one()


class Quarantine(QuarantineView):
    """Writes quarantined lines."""

    def quarantine(self, lines: Iterable[Malformed], at: int, *, more: int = 0) -> int:
        """Keeps lines that could not be read, each once, with how often it was met.

        Where `MOST_LINES` are kept already, others are counted only.

        Args:
            lines: as met.
            at: now.
            more: lines that were met beside these, of which only the number is known.

        Returns:
            How many are kept that were not known.
        """
        met: dict[str, Malformed] = {}
        times: Counter[str] = Counter()
        for line in lines:
            digest = _digest(line)
            met[digest] = line
            times[digest] += 1
        times[_COUNTER] += more
        if not times.total():
            return 0
        columns = quarantined_line.c
        known = {
            row.digest: row
            for row in self._connection.execute(
                select(columns.digest, columns.first_seen, columns.last_seen, columns.times).where(
                    self._here(quarantined_line)
                )
            )
        }
        unknown = [digest for digest in met if digest not in known]
        room = max(MOST_LINES - len(known.keys() - {_COUNTER}), 0)
        for digest in unknown[room:]:
            times[_COUNTER] += times.pop(digest)
        met[_COUNTER] = ONLY_COUNTED
        self._replace(
            quarantined_line,
            [
                {
                    "digest": digest,
                    **values_of(met[digest]),
                    "first_seen": known[digest].first_seen if digest in known else at,
                    "last_seen": max(known[digest].last_seen, at) if digest in known else at,
                    "times": number + (known[digest].times if digest in known else 0),
                }
                for digest, number in times.items()
                if number
            ],
        )
        return len(unknown[:room])

    def _prune_quarantined(self, before: int) -> int:
        """Deletes lines that were last met before, and those beyond the number that may stay.

        How often the latter were met is still counted.

        Args:
            before: second.

        Returns:
            how many.
        """
        columns = quarantined_line.c
        deleted = self._connection.execute(
            delete(quarantined_line).where(self._here(quarantined_line), columns.last_seen < before)
        ).rowcount
        crowded = self._connection.execute(
            select(columns.digest, columns.last_seen, columns.times)
            .where(
                self._here(quarantined_line),
                columns.last_seen >= before,  # all that are left; this way an index is used
                columns.digest != _COUNTER,
            )
            .order_by(columns.last_seen.desc(), columns.digest)
            .offset(MOST_LINES_AFTER_PRUNING)
            .limit(MOST_LINES)
        ).all()
        if crowded:
            self._delete(quarantined_line, [{"digest": row.digest} for row in crowded])
            self.quarantine((), crowded[0].last_seen, more=sum(row.times for row in crowded))
        return deleted + len(crowded)


def _digest(line: Malformed) -> str:
    return sha256(f"{line.source}\0{line.text}".encode("utf-8", "backslashreplace")).hexdigest()
