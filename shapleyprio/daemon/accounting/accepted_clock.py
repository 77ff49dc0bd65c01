"""Accepts a controller's clock that is behind the last cycle, for it was ahead then."""

from __future__ import annotations

from dataclasses import dataclass

from shapleyprio.daemon.accounting.accounting import OpenLedger
from shapleyprio.daemon.accounting.cluster_clock import AccountingError
from shapleyprio.slurm.port import Controller
from shapleyprio.store import ClusterStore, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedClock:
    """What became of the ledger.

    Attributes:
        before: second at which it stood.
        now: second at which it stands.
        ahead: runs that lie ahead of it, and are accounted when their time has come.
    """

    before: int
    now: int
    ahead: int


def accept_clock(store: ClusterStore, controller: Controller, *, overlap: int) -> AcceptedClock:
    """Lets the ledger go on from the controller's clock; what it holds stays exact.

    Estimates that were made ahead of that clock are deleted.

    Args:
        store: of the ledger.
        controller: as it is now.
        overlap: seconds by which records may be late.

    Raises:
        AccountingError: there is nothing to accept, or the ledger cannot go back so far.
        StoreError: so for the store.
    """
    now = controller.time

    def accept(transaction: Transaction) -> AcceptedClock:
        watermark = transaction.watermark()
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
        transaction.forget_estimates(now)
        return AcceptedClock(before=watermark.accounted_to, now=now, ahead=ahead)

    return store.transact(accept)
