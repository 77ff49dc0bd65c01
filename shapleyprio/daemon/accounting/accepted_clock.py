"""Accepts a controller's clock that is behind the last cycle because it was ahead then."""

from __future__ import annotations

from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.cluster_clock import AccountingError
from shapleyprio.slurm.port import Controller
from shapleyprio.store import AcceptedClockRow, ClusterStore, Transaction


def accept_clock(
    store: ClusterStore, controller: Controller, *, overlap: int, user: str
) -> AcceptedClockRow:
    """Lets the ledger continue from the controller's clock; what it has stays exact.

    Estimates that were made ahead of that clock are deleted. That it was accepted is on record.

    Args:
        store: of the ledger.
        controller: as it is now.
        overlap: seconds by which records may be late.
        user: who accepts it, for people.

    Returns:
        what became of the ledger.

    Raises:
        AccountingError: there is nothing to accept, or the ledger cannot go back so far.
        StoreError: so for the store.
    """
    now = controller.time

    def accept(transaction: Transaction) -> AcceptedClockRow:
        watermark = transaction.ledger.watermark()
        if watermark is None or watermark.accounted_to <= now:
            raise AccountingError(
                f"the controller's clock ({now}) is not behind the last cycle: nothing to accept"
            )
        opened = OpenLedger(
            transaction,
            horizon=watermark.horizon,
            opens=watermark.opened,
            ask_holders=dict,
            weight=watermark.weight,
        )
        opened.look(controller, overlap=overlap)
        ahead = opened.go_back(now)
        transaction.estimates.forget_estimates(now)
        row = AcceptedClockRow(at=now, before=watermark.accounted_to, ahead=ahead, user=user)
        transaction.history.note_accepted_clock(row)
        return row

    return store.transact(accept)
