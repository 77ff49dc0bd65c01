"""Figures from the rows of one window: drifts, their sum, and who would have more alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import inf
from typing import Any

from shapleyprio.common.wording import clock_time, duration
from shapleyprio.replay.policies import COMPARED, RECORDED
from shapleyprio.store import DriftRow, HistoryView

ALONE = "alone"
"""In place of a policy: what each organization would have had by itself."""

SCHEDULES = (RECORDED, *COMPARED)
"""Policies whose schedules are compared with the fair one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastWindow:
    """By how much every organization's work came late or ahead in the last replayed window.

    Attributes:
        begin, end: of the window, in seconds since the epoch.
        reference: what counts as fair, ``ref`` or ``rand``.
        drifts: organization -> (ψ − ψ*) / p_tot* of what happened, in seconds.
        unfairness: Δψ/p_tot of what happened, in seconds.
    """

    begin: int
    end: int
    reference: str
    drifts: Mapping[str, Fraction]
    unfairness: Fraction

    def delay(self, organization: str) -> Fraction | None:
        """Returns by how many seconds it was late (ahead, if negative); None if not known."""
        drift = self.drifts.get(organization)
        return None if drift is None else -drift

    @property
    def in_words(self) -> str:
        """Which schedule counts as fair, and over which time."""
        length = duration(self.end - self.begin)
        return f"the fair schedule ({self.reference}) of the {length} to {clock_time(self.end)}"

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps."""
        return {
            "begin": self.begin,
            "end": self.end,
            "reference": self.reference,
            "unfairness_seconds": float(self.unfairness),
        }


def last_window(history: HistoryView) -> LastWindow | None:
    """Returns what the last replayed window says of what happened; None before the first one."""
    rows = [row for row in history.drifts() if row.schedule == RECORDED and row.parts]
    newest = [row for row in rows if row.t == rows[0].t]
    if not newest:
        return None
    return LastWindow(
        begin=newest[0].begin,
        end=newest[0].t,
        reference=newest[0].reference,
        drifts={row.organization: row.drift for row in newest},
        unfairness=unfairness_of(newest)[RECORDED],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationDrift:
    """What a replayed window says of one organization.

    Attributes:
        t, begin: end and begin of the window, in seconds since the epoch.
        reference: what counts as fair, ``ref`` or ``rand``.
        organization: its name.
        drifts: schedule -> (ψ − ψ*) / p_tot*, in seconds; negative: its work came too late.
        alone_gain: v({u}) / ψ − 1; see `alone_gains_of`.
    """

    t: int
    begin: int
    reference: str
    organization: str
    drifts: Mapping[str, Fraction]
    alone_gain: Fraction | float | None

    def as_json(self) -> dict[str, Any]:
        """Returns a value for json.dumps, which knows no infinity."""
        gain = self.alone_gain
        return {
            "t": self.t,
            "begin": self.begin,
            "reference": self.reference,
            "organization": self.organization,
            "drift_seconds": {name: float(drift) for name, drift in self.drifts.items()},
            "alone_gain_ratio": None if gain is None or gain == inf else float(gain),
        }


def drift_history(
    history: HistoryView, organization: str | None = None, limit: int = 30
) -> list[OrganizationDrift]:
    """Returns what replayed windows said of every organization (or that one), the newest first."""
    rows = history.drifts(organization=organization, limit=limit * len((*SCHEDULES, ALONE)))
    return [
        _organization_drift(list(of_one))
        for _, of_one in groupby(rows, key=lambda row: (row.t, row.organization))
    ]


def _organization_drift(rows: list[DriftRow]) -> OrganizationDrift:
    first = rows[0]
    return OrganizationDrift(
        t=first.t,
        begin=first.begin,
        reference=first.reference,
        organization=first.organization,
        drifts={schedule: drift for (_, schedule), drift in drifts_of(rows).items()},
        alone_gain=alone_gains_of(rows).get(first.organization),
    )


def drifts_of(rows: Iterable[DriftRow]) -> Mapping[tuple[str, str], Fraction]:
    """Returns (organization, schedule) -> (ψ − ψ*) / p_tot*, in seconds, the alone left out."""
    return {(row.organization, row.schedule): row.drift for row in rows if row.schedule != ALONE}


def unfairness_of(rows: Iterable[DriftRow]) -> Mapping[str, Fraction]:
    """Returns schedule -> Δψ/p_tot: Σ|ψ − ψ*| / p_tot* (SPAA 2013, section 7.2), in seconds."""
    sums: dict[str, Fraction] = {}
    for (_, schedule), drift in drifts_of(rows).items():
        sums[schedule] = sums.get(schedule, Fraction(0)) + abs(drift)
    return sums


def alone_gains_of(rows: Iterable[DriftRow]) -> Mapping[str, Fraction | float]:
    """Returns organization -> v({u}) / ψ(u) − 1: how much more it would have had alone.

    Negative for an organization that gains by the consortium, infinite for one that got nothing in
    it but would have had something alone; missing for one that has nothing either way.
    """
    utilities = {(row.organization, row.schedule): row.utility for row in rows}
    gains: dict[str, Fraction | float] = {}
    for (organization, schedule), alone in utilities.items():
        got = utilities.get((organization, RECORDED), 0)
        if schedule == ALONE and (got or alone):
            gains[organization] = Fraction(alone, got) - 1 if got else inf
    return gains
