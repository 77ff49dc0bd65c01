"""Jobs that count for shorter than Slurm has called them eligible."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import select

from shapleyprio.store.rows import KeptBack
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import kept_back


class KeptBackView(Scope):
    """Reads which jobs were kept back."""

    def kept_back(self) -> dict[int, KeptBack]:
        """Returns job id -> what is known of it."""
        query = select(*columns(kept_back)).where(self._here(kept_back))
        return {row.job_id: row for row in self._read(KeptBack, query)}


class KeptBackJobs(KeptBackView):
    """Writes which jobs were kept back."""

    def save_kept_back(self, rows: Iterable[KeptBack]) -> None:
        """Stores rows, each in place of that of the same job."""
        self._replace(kept_back, [values_of(row) for row in rows])

    def prune_kept_back(self, live: Collection[int]) -> int:
        """Forgets the jobs that are gone, and returns how many they were.

        Args:
            live: ids of all jobs that wait or run.
        """
        gone = self.kept_back().keys() - set(live)
        self._delete(kept_back, [{"job_id": job_id} for job_id in gone])
        return len(gone)
