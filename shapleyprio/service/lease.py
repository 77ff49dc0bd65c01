"""One process at a time steers a cluster: a lease in the store."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable

from shapleyprio.store import ClusterStore, LeaseRow, StoreError

SHORTEST_SECONDS = 300


def lasting(poll_interval: int) -> int:
    """Returns for how many seconds a lease is taken that every cycle renews."""
    return max(SHORTEST_SECONDS, 3 * poll_interval)


class LeaseHeldError(Exception):
    """Another process steers this cluster; the message says which and what to do."""


class Lease:
    """The right to write into one cluster's Slurm, held by one process at a time.

    A holder that died on this host is succeeded at once, one on another host when its lease has
    run out.

    Args:
        store: of the cluster, where the lease is kept.
        seconds: how long it lasts without being renewed.
        clock: seconds since the epoch.

    Attributes:
        seconds: as above, from the next renewal on.
    """

    def __init__(
        self,
        store: ClusterStore,
        *,
        seconds: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self.seconds = seconds
        self._clock = clock
        self._host = socket.gethostname()
        self._holder = uuid.uuid4().hex
        self._is_ours = False

    def renew(self) -> None:
        """Takes the lease or makes it last longer.

        Raises:
            LeaseHeldError: another process has it.
            StoreError: the store cannot be used.
        """
        now = int(self._clock())
        if not self._is_ours:
            # who has it may be writing for longer than we would wait, but a read waits for nobody
            with self._store.reading() as view:
                current = view.lease()
            if current is not None and current.is_valid(now) and not self._is_dead(current):
                raise self._held_by(current)
        with self._store.transaction() as transaction:
            current = transaction.lease()
            if current is not None and self._is_dead(current):
                transaction.release_lease(current.holder)
            other = transaction.take_lease(
                self._holder, self._host, os.getpid(), now=now, ttl=self.seconds
            )
        self._is_ours = other is None
        if other is not None:
            raise self._held_by(other)

    def release(self) -> None:
        """Gives the lease back, if the store can be used."""
        self._is_ours = False
        try:
            with self._store.transaction() as transaction:
                transaction.release_lease(self._holder)
        except StoreError:
            return

    def _held_by(self, other: LeaseRow) -> LeaseHeldError:
        return LeaseHeldError(
            f"process {other.pid} on {other.host} steers cluster {self._store.cluster}"
            f" already; stop it first, or wait {other.ttl} s if that host is gone"
        )

    def _is_dead(self, other: LeaseRow) -> bool:
        if other.host != self._host:
            return False
        try:
            os.kill(other.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return other.pid == os.getpid() and other.holder != self._holder
