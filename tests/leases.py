"""Other processes that have a cluster's lease, or had it."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import make_url

from shapleyprio.daemon.pushing.lease import Lease

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapleyprio.store import ClusterStore, Transaction


def take_away(rows: Transaction, holder: str = "other", *, ttl: int = 300) -> int:
    """Process 1 elsewhere takes the lease, whoever has it, and shows no life; returns its token."""
    token = rows.lease.take(holder, "elsewhere", 1, ttl=ttl, instead_of=rows.lease.read())
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
        lease = view.lease.read()
    return lease is None or not lease.is_held


def is_locked(url: str) -> bool:
    """Whether a process has SQLite's lock, which nobody can break; servers have none like it."""
    file = make_url(url).database
    if not url.startswith("sqlite") or file is None:
        return False
    with closing(sqlite3.connect(file, timeout=0.5, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False
