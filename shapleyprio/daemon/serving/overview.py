"""The contents of the status page: read from the store, seldom, by one request at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from threading import Lock
from typing import Any

from shapleyprio.common.wording import DAY
from shapleyprio.daemon.answering.changes import Change, read_changes
from shapleyprio.daemon.answering.freshness import (
    exception_as_json,
    patience_of,
    pause_as_json,
    sentences_on_guarantees,
)
from shapleyprio.daemon.answering.status import Status, read_status
from shapleyprio.daemon.serving.checks import Checked
from shapleyprio.fairness.pool import ledger_of
from shapleyprio.store import (
    ClusterStore,
    CycleRow,
    ExceptionRow,
    HistoryView,
    PauseRow,
    StoreError,
)

MOST_ROWS = 20_000
"""Some 300 windows of 16 organizations with four schedules each: more than a sparkline shows."""

Point = tuple[int, float]
"""End of a replayed window, and the drift in seconds over that window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Signed drift (ψ − ψ*) / p_tot of every organization, of the windows that ended in a day.

    Attributes:
        since, until: the day, seconds since the epoch.
        lines: organization -> its points, the oldest first.
    """

    since: int
    until: int
    lines: Mapping[str, tuple[Point, ...]]

    @property
    def largest_seconds(self) -> float:
        """The largest |drift| of the day."""
        return max(abs(seconds) for line in self.lines.values() for _, seconds in line)

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "organizations": {
                name: [list(point) for point in line] for name, line in self.lines.items()
            }
        }


def drift_of_last_day(history: HistoryView, until: int) -> Drift | None:
    """Returns the drift over windows that ended in the 24 hours up to `until`, None without any."""
    since = until - DAY
    rows = [
        row
        for row in history.drifts(since=since, limit=MOST_ROWS)
        if row.schedule == "recorded" and row.parts and row.t <= until
    ]
    if not rows:
        return None
    lines: dict[str, list[Point]] = {}
    for row in reversed(rows):
        lines.setdefault(row.organization, []).append((row.t, float(row.drift)))
    return Drift(
        since=since, until=until, lines={name: tuple(line) for name, line in lines.items()}
    )


WEEK = 7 * DAY
MOST_CHANGES = 20
"""Changes of the last week that are shown, the newest ones."""

KEPT_SECONDS = 2.0
"""Seconds for which an overview answers all requests."""

PATIENCE_SECONDS = 5.0
"""Seconds for which a request waits for another one that reads the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything that the page shows of a cluster.

    Attributes:
        cluster: its name; where pools split it, that of one of its ledgers.
        others: names of its other ledgers.
        at: when this was read, seconds since the epoch.
        poll_seconds: time from one cycle to the next.
        status: after the last cycle with standings; None if there is none.
        why: there is none; empty if there is.
        drift: of the last 24 hours of the cluster's clock, None if nothing was replayed.
        drift_trouble: why the last window was not replayed; empty if it was.
        checked: what `check` found last; None until it has run.
        changes: of the last week, the oldest first.
        pause: that lasts; None if nothing is paused.
        exceptions: those that last.
    """

    cluster: str
    others: Sequence[str]
    at: int
    poll_seconds: int
    status: Status | None
    why: str
    drift: Drift | None
    drift_trouble: str
    checked: Checked | None
    changes: Sequence[Change] = ()
    pause: PauseRow | None = None
    exceptions: Sequence[ExceptionRow] = ()

    @property
    def on_guarantees(self) -> list[str]:
        """The jobs that go first by guarantees, in sentences; in a pause none do."""
        return [] if self.pause else sentences_on_guarantees(self.exceptions)

    @property
    def last_cycle(self) -> CycleRow | None:
        """The newest cycle, whether it went well or not."""
        return None if self.status is None else self.status.failure or self.status.cycle

    @property
    def silent_seconds(self) -> int:
        """For how long no cycle has ended, if that is longer than it should be, else 0."""
        last = self.last_cycle
        silent = self.at - last.finished if last else 0
        return silent if silent > patience_of(self.poll_seconds) else 0

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps: what `shapleyprio status --json` prints, and more."""
        last = self.last_cycle
        status: dict[str, Any] = (
            {"cluster": self.cluster} if self.status is None else self.status.as_json()
        )
        return {
            **status,
            "other_ledgers": list(self.others) or None,
            "error": self.why or None,
            "pause": pause_as_json(self.pause),
            "exceptions": [exception_as_json(row) for row in self.exceptions],
            "version": version("shapleyprio"),
            "at": self.at,
            "silent_seconds": self.silent_seconds,
            "last_cycle": None if last is None else {**asdict(last), "seconds": dict(last.seconds)},
            "drift": status.get("drift")
            and {
                **status["drift"],
                **(self.drift.as_json() if self.drift else {"organizations": {}}),
            },
            "drift_trouble": self.drift_trouble or None,
            "check": self.checked and self.checked.as_json(),
            "changes": [change.as_json() for change in self.changes],
        }


class Overviews:
    """Reads overviews. However many ask, one thread at a time uses the store.

    The cycles share the store's connections and must never wait for readers.

    Args:
        store: of the cluster, what the cycles write.
        checked: what `check` found last.
        drift_trouble: why the last window was not replayed; empty if it was.
        clock: seconds since the epoch.

    Attributes:
        poll_seconds: from one cycle to the next.
        ledgers: of the cluster; several where pools split it.
    """

    def __init__(
        self,
        store: ClusterStore,
        checked: Callable[[], Checked | None],
        drift_trouble: Callable[[], str] = str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._checked = checked
        self._drift_trouble = drift_trouble
        self._clock = clock
        self._reading = Lock()
        self._last: dict[str, tuple[float, Overview]] = {}
        self.poll_seconds = 0
        self.ledgers = [store.cluster]

    def latest(self, pool: str = "") -> Overview:
        """Returns an overview that is at most two seconds old.

        Args:
            pool: which one is meant where pools split the cluster; the first one if there is none
                of that name.
        """
        wanted = ledger_of(self._store.cluster, pool)
        ledger = wanted if wanted in self.ledgers else self.ledgers[0]
        store = self._store.ledger(ledger)
        if not self._reading.acquire(timeout=PATIENCE_SECONDS):
            return self._overview(store, None, "the store takes too long to answer")
        try:
            until, found = self._last.get(ledger, (0.0, None))
            if found is None or time.monotonic() >= until:
                found = self._read(store)
                self._last[ledger] = time.monotonic() + KEPT_SECONDS, found
            return found
        finally:
            self._reading.release()

    def _read(self, store: ClusterStore) -> Overview:
        try:
            status = read_status(store).seen_by(lambda _users_work: False)  # everybody reads it
            with store.reading() as view:
                drift = drift_of_last_day(view.history, status.cycle.t)
                patience = patience_of(self.poll_seconds)
                changes = read_changes(view, int(self._clock()) - WEEK, patience)
                pause, exceptions = view.orders.pause(), view.orders.exceptions()
        except StoreError as error:
            return self._overview(store, None, str(error))
        found = self._overview(store, status, drift=drift)
        recent = changes[-MOST_CHANGES:]
        return replace(found, changes=recent, pause=pause, exceptions=exceptions)

    def _overview(
        self,
        store: ClusterStore,
        status: Status | None,
        why: str = "",
        drift: Drift | None = None,
    ) -> Overview:
        return Overview(
            cluster=store.cluster,
            others=[name for name in self.ledgers if name != store.cluster],
            at=int(self._clock()),
            poll_seconds=self.poll_seconds,
            status=status,
            why=why,
            drift=drift,
            drift_trouble=self._drift_trouble(),
            checked=self._checked(),
        )
