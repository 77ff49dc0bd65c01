"""Other processes that have a cluster's lease, or had it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from shapleyprio.service.lease import Lease

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapleyprio.store import ClusterStore, Transaction


def take_away(rows: Transaction, holder: str = "other", *, ttl: int = 300) -> int:
    """Process 1 elsewhere takes the lease, whoever has it, and shows no life; returns its token."""
    token = rows.take_lease(holder, "elsewhere", 1, ttl=ttl, instead_of=rows.lease())
    assert token is not None
    return token


@contextmanager
def another_steers(store: ClusterStore) -> Iterator[None]:
    """Another process, of the same number here, has the lease and shows signs of life."""
    with Lease(store, seconds=2).held():
        yield


def nobody_steers(store: ClusterStore) -> bool:
    """Whether the lease was given back, or never taken."""
    with store.reading() as view:
        lease = view.lease()
    return lease is None or not lease.is_held
