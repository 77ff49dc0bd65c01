"""Accepts a controller's clock that is behind the last cycle because it was ahead then."""

from __future__ import annotations

from dataclasses import replace

from shapleyprio.common.wording import clock_time
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
        ahead = _go_back(opened, transaction, now)
        transaction.estimates.forget_estimates(now)
        row = AcceptedClockRow(at=now, before=watermark.accounted_to, ahead=ahead, user=user)
        transaction.history.note_accepted_clock(row)
        return row

    return store.transact(accept)


def _go_back(opened: OpenLedger, transaction: Transaction, now: int) -> int:
    """Sets a ledger back to an earlier second, from which it continues.

    What lies ahead of it is accounted when its time has come: runs that end then have not
    ended yet, and those that begin then are withdrawn.

    Returns:
        how many runs lie ahead.

    Raises:
        AccountingError: somebody holds something, or a stay begins, from a later second on.
    """
    changes = [tenure.since for tenure in opened.tenures if tenure.since is not None]
    changes += [] if opened.stay is None else [opened.stay.since]
    if max(changes, default=0) > now:
        raise AccountingError(
            f"a node or an account changed hands at {clock_time(max(changes))}, or a pool began "
            f"then; first run `shapleyprio ownership recount --since DATE` with a date "
            "before the clock went ahead, or wait until then"
        )
    runs = transaction.runs.runs_alive_after(now)
    ahead = [stored for stored in runs if stored[0].last_event > now]
    opened.withdraw([run.key for run, _ in ahead if run.begin > now])
    opened.place_again(
        (stored, replace(stored[0], end=None, paused_at=None, state="RUNNING"))
        for stored in ahead
        if stored[0].begin <= now
    )
    opened.set_back(now)
    return len(ahead)
