"""Reads out of the store what was in force while what is audited came about."""

from __future__ import annotations

from collections.abc import Sequence

from shapleyprio.common.wording import clock_time
from shapleyprio.daemon.answering.changes import Change, read_changes
from shapleyprio.replay.audit.in_force import InForce
from shapleyprio.store import ClusterStore


def read_in_force(ledgers: Sequence[ClusterStore], begin: int, end: int) -> InForce:
    """Reads what steered and what changed hands in a window.

    Args:
        ledgers: of the game; of several, what steered the first counts, for all have one rule.
        begin: seconds since the epoch.
        end: likewise.

    Raises:
        StoreError: the store cannot be read.
    """
    steering = []
    changes: list[Change] = []
    for ledger in ledgers:
        with ledger.reading() as view:
            steering.append(view.steering(begin))
            changes += read_changes(view, begin, patience=end - begin)
    return InForce(
        begin=begin,
        end=end,
        steering=tuple(steering[0] if steering else ()),
        changes=tuple(
            f"{one.what} at {clock_time(one.at)}"
            for one in changes
            if one.kind == "ownership" and one.at < end
        ),
    )
