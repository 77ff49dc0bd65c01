"""What admins order beside the configuration, kept in the store; the next cycle follows it."""

from __future__ import annotations

from shapleyprio.common.wording import clock_time
from shapleyprio.store import ClusterStore, PauseRow


class OrderError(Exception):
    """An order that cannot be followed; the message is one line for the admin."""


def pause(store: ClusterStore, row: PauseRow) -> None:
    """Pauses steering.

    Raises:
        OrderError: it is paused already.
        StoreError: nothing was changed.
    """
    lasting = store.transact(lambda transaction: transaction.begin_pause(row))
    if lasting is not None:
        raise OrderError(
            f"already paused since {clock_time(lasting.since)} by {lasting.user}:"
            f" {lasting.reason}; run `shapleyprio resume` first to change that"
        )


def resume(store: ClusterStore, at: int, user: str) -> PauseRow:
    """Ends the pause, and returns it as it was.

    Args:
        store: of the cluster.
        at: second by the cluster's clock.
        user: who ends it.

    Raises:
        OrderError: nothing is paused.
        StoreError: nothing was changed.
    """
    lasting = store.transact(lambda transaction: transaction.end_pause(at, user))
    if lasting is None:
        raise OrderError("nothing is paused")
    return lasting
