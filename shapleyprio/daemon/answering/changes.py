"""What changed: one timeline of all that can change priorities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal

from shapleyprio.common.wording import count, duration, listed
from shapleyprio.config.reference import differences
from shapleyprio.daemon.accounting.moves import in_words, together
from shapleyprio.store import (
    AcceptedClockRow,
    ConfigurationRow,
    ExceptionRow,
    Interruption,
    PauseRow,
    SteeringRow,
    View,
)

MOST_NAMES = 5
"""So many nodes or accounts that were corrected are named in one line."""

NOT_SET = "not set"

Kind = Literal[
    "configuration",
    "upgrade",
    "ownership",
    "steering",
    "pause",
    "exception",
    "clock",
    "failure",
    "outage",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Something that changed, or a time in which something was other than usual.

    Attributes:
        at: its begin, seconds since the epoch.
        until: its end; None where it has none, or lasts.
        kind: what sort of change it is.
        what: one line.
    """

    at: int
    until: int | None = None
    kind: Kind
    what: str

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return asdict(self)


def read_changes(view: View, since: int, patience: int) -> list[Change]:
    """Reads what changed at `since` or later, the oldest first, orders before what followed.

    Args:
        view: of the store.
        since: second.
        patience: as for `interruptions`.
    """
    found = [
        *_configurations(view.history.configurations(since), since),
        *_upgrades_of_slurm(view, since),
        *(_pause(row) for row in view.orders.pauses(since) if row.since >= since),
        *(
            _exception(row)
            for row in view.orders.exceptions(since)
            if row.since >= since and not row.by_guarantee
        ),
        *map(_accepted_clock, view.history.accepted_clocks(since)),
        *_ownership(view, since),
        *_corrections(view, since),
        *_steering(view.history.steering(since), since),
        *map(_interruption, view.history.interruptions(since, patience)),
    ]
    return sorted(found, key=attrgetter("at"))


def _configurations(rows: list[ConfigurationRow], since: int) -> Iterator[Change]:
    """Yields configurations taken over or refused, each with what it has other than the last."""
    last: ConfigurationRow | None = None
    for row in rows:
        if row.refused:
            what = f"a configuration was refused, the one before stays: {row.refused}"
            yield Change(at=row.at, kind="configuration", what=what)
            continue
        if row.at >= since:
            yield from _taken_over(last, row)
        last = row


def _taken_over(last: ConfigurationRow | None, row: ConfigurationRow) -> Iterator[Change]:
    if last is None:
        first = f"first configuration on record, shapleyprio {row.version}"
        yield Change(at=row.at, kind="configuration", what=first)
        return
    if last.version != row.version:
        what = f"shapleyprio {last.version} → {row.version}"
        yield Change(at=row.at, kind="upgrade", what=what)
    for key, before, after in differences(last.written, row.written):
        what = f"{key}: {before or NOT_SET} → {after or NOT_SET}"
        yield Change(at=row.at, kind="configuration", what=what)


def _upgrades_of_slurm(view: View, since: int) -> Iterator[Change]:
    for at, before, after in view.history.slurm_versions(since):
        yield Change(at=at, kind="upgrade", what=f"Slurm {before} → {after}")


def _ownership(view: View, since: int) -> Iterator[Change]:
    """Yields what passed from one holder to another, what passed at one time together."""
    for what, change, at in together(view.ledger.tenures().moves(since)):
        yield Change(at=at, kind="ownership", what=f"{what}: {change}")


def _corrections(view: View, since: int) -> Iterator[Change]:
    for _, rows in groupby(view.ledger.corrections(), attrgetter("number")):
        corrected = list(rows)
        first = corrected[0]
        if first.at >= since:
            named = [in_words(row.kind, [row.name]) for row in corrected]
            what = f"{first.user} corrected who had {listed(named, MOST_NAMES)}"
            yield Change(at=first.at, kind="ownership", what=what)


def _steering(rows: list[SteeringRow], since: int) -> Iterator[Change]:
    for row in rows:
        if row.since >= since:
            instead = f" instead of {row.chosen}" if row.chosen != row.rule else ""
            what = f"rule {row.rule}{instead}, channel {row.channel}"
            nothing = "steering has ended"
            yield Change(at=row.since, kind="steering", what=what if row.rule else nothing)


def _pause(row: PauseRow) -> Change:
    how = "priorities stay as written" if row.keep else "priorities are put back"
    what = f"{row.user} paused, {how}: {row.reason}"
    return Change(at=row.since, until=row.until, kind="pause", what=what)


def _exception(row: ExceptionRow) -> Change:
    over = f" ({row.ended_by})" if row.ended_by else ""
    what = f"{row.user} put job {row.label} before {row.others}: {row.reason}{over}"
    return Change(at=row.since, until=row.ended, kind="exception", what=what)


def _accepted_clock(row: AcceptedClockRow) -> Change:
    behind = duration(row.before - row.at)
    what = f"{row.user} accepted the controller's clock, {behind} behind the ledger"
    return Change(at=row.at, kind="clock", what=what)


def _interruption(found: Interruption) -> Change:
    if not found.cycles:
        length = duration(found.end - found.begin)
        return Change(at=found.begin, until=found.end, kind="outage", what=f"no cycle for {length}")
    failed = f"{count(found.cycles, 'cycle')} failed ({found.outcome}): {found.message}"
    return Change(at=found.begin, until=found.end, kind="failure", what=failed)
