"""Whether what the store says still holds: when a cycle ended last, and whether anybody steers."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from shapleyprio.common.wording import clock_time, count
from shapleyprio.store import GUARANTEE, ClusterStore, CycleRow, ExceptionRow, PauseRow

MISSED_CYCLES = 3
"""Intervals without a cycle after which what the last one found is out of date."""

SHORTEST_PATIENCE = 60
"""Seconds for which it holds at least: a cycle of a large cluster takes some itself."""

ROLLBACK = 0
"""The number of no cycle, under which a rollback writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """How a cluster is steered.

    Attributes:
        at: when that was found out, by this host's clock.
        cycle_ended: when the last cycle with standings ended; None before the first one.
        nobody_since: since when no process has held the lease, as far as is known: since that
            cycle; None while one holds it.
        rolled_back_at: when priorities were restored after that cycle, by the cluster's clock; None
            if they were not.
        patience: seconds for which what a cycle found holds.
        pause: that lasts; None if nothing is paused.
        exceptions: those that last.
    """

    at: int
    cycle_ended: int | None
    nobody_since: int | None
    rolled_back_at: int | None
    patience: int
    pause: PauseRow | None
    exceptions: Sequence[ExceptionRow] = ()

    @property
    def age(self) -> int:
        """Seconds since the end of that cycle."""
        return 0 if self.cycle_ended is None else max(self.at - self.cycle_ended, 0)

    @property
    def is_stale(self) -> bool:
        """Whether what that cycle found and wrote does not hold any more."""
        return self.rolled_back_at is not None or self.age > self.patience

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "age": self.age,
            "stale": self.is_stale,
            "nobody_steers_since": self.nobody_since,
            "rolled_back_at": self.rolled_back_at,
            "pause": pause_as_json(self.pause),
            "exceptions": [exception_as_json(row) for row in self.exceptions],
        }


def pause_as_json(pause: PauseRow | None) -> dict[str, Any] | None:
    """Returns a value for json.dumps of a pause that lasts."""
    if pause is None:
        return None
    return {name: getattr(pause, name) for name in ("since", "user", "reason", "keep")}


def sentences_on_guarantees(rows: Iterable[ExceptionRow]) -> list[str]:
    """Says by organization how many jobs go first by its guarantee, and when they are to start."""
    due: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row.by_guarantee and row.until is not None:
            due[row.organization].append(row.until)
    return [
        f"{count(len(until), 'job')} of {name} {'goes' if len(until) == 1 else 'go'} before all "
        f"others by {GUARANTEE}, the first to start by {clock_time(min(until))}."
        for name, until in due.items()
    ]


def exception_as_json(row: ExceptionRow) -> dict[str, Any]:
    """Returns a value for json.dumps of an exception that lasts."""
    names = ("since", "user", "reason", "organization", "before_all", "until")
    return {"job": row.label, **{name: getattr(row, name) for name in names}}


def patience_of(poll_seconds: int) -> int:
    """Returns the seconds for which what a cycle found holds.

    Args:
        poll_seconds: from one cycle to the next.
    """
    return max(MISSED_CYCLES * poll_seconds, SHORTEST_PATIENCE)


def read_steering(
    store: ClusterStore, poll_seconds: int, clock: Callable[[], float] = time.time
) -> Steering:
    """Reads how a cluster is steered.

    Args:
        store: of the cluster.
        poll_seconds: from one cycle to the next.
        clock: seconds since the epoch.

    Raises:
        StoreError: it cannot be found out.
    """
    now = int(clock())
    with store.reading() as view:
        standings = view.history.latest_standings()
        cycle = view.history.cycle(standings[0].cycle) if standings else None
        lease = view.lease.read()
        pushes = view.pushes.latest(limit=1)
        pause, exceptions = view.orders.pause(), view.orders.exceptions()
    patience = patience_of(poll_seconds)
    held = lease is not None and lease.is_held and lease.age <= max(lease.ttl, patience)
    put_back = pushes[0].at if pushes and pushes[0].cycle == ROLLBACK else None
    return Steering(
        at=now,
        cycle_ended=None if cycle is None else cycle.finished,
        nobody_since=None if held or cycle is None else cycle.finished,
        rolled_back_at=put_back if _is_after(put_back, cycle) else None,
        patience=patience,
        pause=pause,
        exceptions=exceptions,
    )


def _is_after(put_back: int | None, cycle: CycleRow | None) -> bool:
    return put_back is not None and (cycle is None or put_back >= cycle.t)
