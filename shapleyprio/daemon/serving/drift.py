"""The last day's drift of what really happened, as the store keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shapleyprio.common.wording import DAY
from shapleyprio.store import HistoryView

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
