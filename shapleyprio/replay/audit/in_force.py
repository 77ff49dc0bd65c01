"""What was in force while what happened came about: who ordered the queue, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shapleyprio.common.wording import clock_time, listed
from shapleyprio.fairness.directcontr import DirectContr
from shapleyprio.replay.policies import COMPARED
from shapleyprio.store import SteeringRow

MOST_NAMED = 6
"""Changes that a first page names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """What was in force in a window.

    Attributes:
        begin, end: of the window, in seconds since the epoch.
        steering: which rule and channel steered since when, the oldest first, from what did at the
            begin; empty if that is not known.
        changes: of ownership, in words, such as ``node b3: physics → biology since ...``.
    """

    begin: int
    end: int
    steering: tuple[SteeringRow, ...] = ()
    changes: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The rule that ranked for most of the window; empty if none did for most of it."""
        seconds = {"": max(self._until(0) - self.begin, 0)}
        for number, row in enumerate(self.steering):
            lasted = self._until(number + 1) - max(row.since, self.begin)
            seconds[row.rule] = seconds.get(row.rule, 0) + lasted
        return max(seconds, key=seconds.__getitem__)

    @property
    def since(self) -> int | None:
        """Since when that rule has ranked without a break; None if it does not at the end."""
        found = None
        for row in reversed(self.steering):
            if row.rule != self.rule:
                break
            found = row.since
        return found if self.rule else None

    @property
    def whole(self) -> bool:
        """Whether that rule ranked in the whole window."""
        return self.since is not None and self.since <= self.begin

    @property
    def compared(self) -> Sequence[str]:
        """The policies to hold what happened against: no rule of ours that did not steer."""
        if self.rule in {"", DirectContr.name}:
            return COMPARED
        return [policy for policy in COMPARED if policy != DirectContr.name]

    def sentences(self) -> tuple[str, ...]:
        """Says what ordered the queue since when, and what changed hands."""
        if not self.steering:
            return ()
        steered = [_in_words(row) for row in self.steering]
        if self.steering[0].since > self.begin:
            steered.insert(0, "nothing known of shapleyprio before")
        found = [f"Order of the queue: {listed(steered, MOST_NAMED)}"]
        if self.changes:
            found.append(f"Changes of ownership: {listed(self.changes, MOST_NAMED)}")
        return tuple(found)

    def _until(self, number: int) -> int:
        """Returns the end of what steered before that row."""
        begins = [min(row.since, self.end) for row in self.steering]
        return begins[number] if number < len(begins) else self.end


def _in_words(row: SteeringRow) -> str:
    since = f"since {clock_time(row.since)}"
    if not row.rule:
        return f"nothing of shapleyprio {since}"
    instead = f" instead of {row.chosen}, which had no estimate," if row.rule != row.chosen else ""
    return f"the rule {row.rule}{instead} by the channel {row.channel} {since}"
