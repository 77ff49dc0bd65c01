"""What was in force while what happened came about: who ordered the queue, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shapleyprio.common.wording import clock_time, listed
from shapleyprio.fairness.rules import DirectContr
from shapleyprio.replay.policies import COMPARED
from shapleyprio.store import SteeringRow

MOST_NAMED = 6
"""Changes that a first page names."""

NEARLY = 0.95
"""Part of a window for which a rule must have ranked to be what the window was like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """What was in force in a window.

    Attributes:
        begin, end: of the window, in seconds since the epoch.
        steering: which rule and channel have steered since when, the oldest first, from what did
            at the begin to what does now; empty if that is not known.
        changes: of ownership in the window, in words, such as ``node b3: physics → biology at
            2026-11-22 14:02:00``.
        orders: of admins that held in the window, in words: pauses, and exceptions by which jobs
            went first, each with what it cost.
    """

    begin: int
    end: int
    steering: tuple[SteeringRow, ...] = ()
    changes: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The rule that ranked for most of the window; empty if none did for most of it."""
        seconds = self._seconds
        return max(seconds, key=seconds.__getitem__)

    @property
    def whole(self) -> bool:
        """Whether that rule ranked in nearly the whole window."""
        return self._seconds[self.rule] >= NEARLY * (self.end - self.begin)

    @property
    def since(self) -> int | None:
        """Since when what ranks now was chosen or ranked; None if nothing does."""
        found, now = None, self.steering[-1] if self.steering else None
        for row in reversed(self.steering):
            if now is None or not now.rule or now.rule not in {row.rule, row.chosen}:
                break
            found = row.since
        return found

    @property
    def compared(self) -> Sequence[str]:
        """The policies to hold what happened against: no rule of ours that did not steer."""
        if self.rule in {"", DirectContr.name}:
            return COMPARED
        return [policy for policy in COMPARED if policy != DirectContr.name]

    def sentences(self) -> tuple[str, ...]:
        """Says what ordered the queue since when, what changed hands and what admins ordered."""
        if not self.steering:
            return ()
        steered = [_in_words(row) for row in self.steering]
        if self.steering[0].since > self.begin:
            steered.insert(0, "nothing known of shapleyprio before")
        found = [f"Order of the queue: {listed(steered, MOST_NAMED)}"]
        if self.changes:
            found.append(f"Changes of ownership: {listed(self.changes, MOST_NAMED)}")
        return (*found, *self.orders)

    @property
    def _seconds(self) -> dict[str, int]:
        """Rule -> for how long it ranked in the window; the empty one for none."""
        begins = [min(max(row.since, self.begin), self.end) for row in self.steering]
        ends = [*begins, self.end]
        seconds = {"": ends[0] - self.begin}
        for row, begin, end in zip(self.steering, begins, ends[1:], strict=True):
            seconds[row.rule] = seconds.get(row.rule, 0) + end - begin
        return seconds


def _in_words(row: SteeringRow) -> str:
    since = f"since {clock_time(row.since)}"
    if not row.rule:
        return f"not by shapleyprio {since}"
    instead = f" instead of {row.chosen}, which had no estimate," if row.rule != row.chosen else ""
    return f"the rule {row.rule}{instead} by the channel {row.channel} {since}"
