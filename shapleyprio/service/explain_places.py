"""Where the organizations stand by balance, and where Slurm's fair share would put them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shapleyprio.fairness.ledger import Ledger
from shapleyprio.store import StandingRow

SECONDS_OF_AN_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an organization stands among the others.

    Attributes:
        organization: its name.
        place: by balance, 1 is served first.
        organizations: how many there are.
        contribution, utility: φ̃ and ψ in part-seconds.
        received: by how many processor-seconds' worth it received more than it contributed
            (negative: less), (ψ − φ̃) / mean worth of a part.
        points: priority points that its jobs get.
        processors: owned.
        used: processor-seconds of its jobs, no older than the horizon.
        fair_share_place: its place by usage for each processor owned, the least first, as Slurm's
            fair share has it with the processors as shares; of equal usage it is the same.
        before: organization with a better place -> its jobs that wait.
        before_by_fair_share: the same by usage for each processor owned.
    """

    organization: str
    place: int
    organizations: int
    contribution: int
    utility: int
    received: Fraction
    points: int
    processors: int
    used: int
    fair_share_place: int
    before: Mapping[str, int]
    before_by_fair_share: Mapping[str, int]

    @property
    def balance(self) -> int:
        """φ̃ − ψ in part-seconds."""
        return self.contribution - self.utility

    @property
    def used_each(self) -> Fraction | None:
        """Seconds that its jobs used of each processor it owns; None if it owns none."""
        return Fraction(self.used, self.processors) if self.processors else None

    def as_json(self) -> dict[str, Any]:
        """As a value for json.dumps."""
        each = self.used_each
        return {
            "organization": self.organization,
            "place": self.place,
            "organizations": self.organizations,
            "contribution": self.contribution,
            "utility": self.utility,
            "balance": self.balance,
            "received_processor_hours": float(self.received / SECONDS_OF_AN_HOUR),
            "points": self.points,
            "before": dict(self.before),
            "fair_share": {
                "place": self.fair_share_place,
                "processors": self.processors,
                "used_processor_seconds": self.used,
                "used_hours_each": None if each is None else float(each / SECONDS_OF_AN_HOUR),
                "before": dict(self.before_by_fair_share),
            },
        }


def mean_worth(ledger: Ledger, t: int) -> Fraction:
    """Mean worth in seconds of all parts ever executed: their mean age, capped at the horizon.

    Dividing worth by it gives processor-seconds: the worth of all parts together gives as many
    as were executed, and parts of equal age give just what was executed.

    Args:
        ledger: of all organizations and of nobody.
        t: where the ledger stands, as for `Ledger.pairs`.

    Returns:
        1 if nothing was executed yet.
    """
    worth = sum(worth for _, _, worth, *_ in ledger.pairs(t))
    parts = sum(entry.total.parts(t) for entry in ledger.entries.values())
    return Fraction(worth, parts) if parts else Fraction(1)


def places(
    standings: Sequence[StandingRow], worth: Fraction, waiting: Mapping[str, int]
) -> dict[str, Place]:
    """The place of every organization.

    Args:
        standings: of one cycle.
        worth: `mean_worth` of a part in seconds.
        waiting: organization -> its jobs that wait.

    Returns:
        organization -> where it stands, the first to be served first.
    """
    order = sorted(standings, key=lambda row: -row.priority)
    usage = {row.organization: _usage(row) for row in order}
    return {
        row.organization: _place(row, place, order, worth, waiting, usage)
        for place, row in enumerate(order, start=1)
    }


def _place(
    row: StandingRow,
    place: int,
    order: Sequence[StandingRow],
    worth: Fraction,
    waiting: Mapping[str, int],
    usage: Mapping[str, tuple[bool, Fraction]],
) -> Place:
    lower = [name for name in usage if usage[name] < usage[row.organization]]
    return Place(
        organization=row.organization,
        place=place,
        organizations=len(order),
        contribution=row.contribution,
        utility=row.utility,
        received=(row.utility - row.contribution) / worth,
        points=row.priority,
        processors=row.processors,
        used=row.parts,
        fair_share_place=len(lower) + 1,
        before={one.organization: waiting.get(one.organization, 0) for one in order[: place - 1]},
        before_by_fair_share={name: waiting.get(name, 0) for name in lower},
    )


def _usage(row: StandingRow) -> tuple[bool, Fraction]:
    """What fair share orders by; without a share Slurm's factor is the lowest there is."""
    return not row.processors, Fraction(row.parts, row.processors or 1)
