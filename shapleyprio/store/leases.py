"""Who may write to a cluster's Slurm: one process at a time."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select

from shapleyprio.store.rows import Lease
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import lease


class LeaseView(Scope):
    """Reads the lease."""

    def lease(self) -> Lease | None:
        """The lease as it stands, be it still valid or not; None if nobody has it."""
        rows = self._read(Lease, select(*columns(lease)).where(self._here(lease)))
        return rows[0] if rows else None


class Leases(LeaseView):
    """Takes and gives back the lease."""

    def take_lease(self, holder: str, host: str, pid: int, *, now: int, ttl: int) -> Lease | None:
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
        elif current is not None and now <= current.renewed_at + current.ttl:
            return current
        ours = Lease(holder=holder, host=host, pid=pid, since=since, renewed_at=now, ttl=ttl)
        self._replace(lease, [values_of(ours)])
        return None

    def renew_lease(self, holder: str, now: int) -> bool:
        """Renews the holder's lease; False if the lease is not its own any more."""
        current = self.lease()
        if current is None or current.holder != holder:
            return False
        self._replace(lease, [values_of(replace(current, renewed_at=now))])
        return True

    def release_lease(self, holder: str) -> None:
        """Gives the lease back if the holder has it."""
        self._delete(lease, [{"holder": holder}])
