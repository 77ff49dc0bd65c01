"""The lease that lets one process at a time write to a cluster's Slurm."""

from __future__ import annotations

from sqlalchemy import select

from shapleyprio.store.rows import LeaseRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import lease


class LeaseView(Scope):
    """Reads the lease."""

    def lease(self) -> LeaseRow | None:
        """Returns the lease as it stands, be it still valid or not; None if nobody has it."""
        rows = self._read(LeaseRow, select(*columns(lease)).where(self._here(lease)))
        return rows[0] if rows else None


class Leases(LeaseView):
    """Takes and gives back the lease."""

    def take_lease(
        self, holder: str, host: str, pid: int, *, now: int, ttl: int
    ) -> LeaseRow | None:
        """Takes or renews the lease, unless another holder's is still valid.

        Args:
            holder: a name unique to this process.
            host: where it runs, for people.
            pid: its process there, for people.
            now: seconds since the epoch.
            ttl: seconds.

        Returns:
            None if the lease is ours now, else the other holder's, which stands in the way.
        """
        current = self.lease()
        since = now
        if current is not None and current.holder == holder:
            since = current.since
        elif current is not None and current.is_valid(now):
            return current
        ours = LeaseRow(holder=holder, host=host, pid=pid, since=since, renewed_at=now, ttl=ttl)
        self._replace(lease, [values_of(ours)])
        return None

    def release_lease(self, holder: str) -> None:
        """Gives the lease back if the holder has it."""
        self._delete(lease, [{"holder": holder}])
