"""The ledger: exact utility ψ and contribution φ̃ of every organization, at any time.

One entry for each pair of organization and owner holds what the owner's processors did for the
organization's jobs. An organization's ψ is the sum over its row, its φ̃ the sum over its column
(DirectContr), so that Σφ̃ = Σψ holds by construction once NOBODY is counted in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from shapleyprio.fairness.tenure import Placement
from shapleyprio.fairness.utility import Moments


@dataclass(frozen=True, slots=True)
class Standing:
    """What an organization gave and got by some time t.

    Attributes:
        contribution: φ̃, worth of the parts executed on its processors, in part-seconds.
        utility: ψ, worth of the parts of its jobs, in part-seconds.
        parts: how many parts of its jobs were completed, no older than the horizon.
    """

    contribution: int
    utility: int
    parts: int

    @property
    def balance(self) -> int:
        """φ̃ − ψ: the higher, the sooner its next job should start."""
        return self.contribution - self.utility


@dataclass(frozen=True, slots=True)
class Course:
    """An organization's balance from a time t on, for as long as nothing starts or ends.

    Attributes:
        balance: φ̃ − ψ at t, in part-seconds.
        slope: completed parts that gain worth, those on its processors less those of its jobs.
        bend: processors at work, its own less those its jobs are on; with a horizon less those
            whose parts reach it.
    """

    balance: int
    slope: int
    bend: int

    def after(self, seconds: int) -> int:
        """φ̃ − ψ so many seconds after t."""
        return self.balance + seconds * self.slope + seconds * (seconds + 1) // 2 * self.bend


@dataclass(slots=True)
class Entry:
    """Moments of what one owner's processors did for one organization's jobs.

    Attributes:
        total: of all events.
        folded: of those no later than the ledger's fold.
    """

    total: Moments = field(default_factory=Moments)
    folded: Moments = field(default_factory=Moments)


class Ledger:
    """Exact sums over placements, changed by adding and taking back placements.

    Adding is commutative and taking back its inverse, so the ledger depends on the placements
    it holds and not on the order in which they came.

    Args:
        horizon: age in seconds from which a part gains nothing more, None for never.
        folded_to: the fold, a time up to which events also count as older than the horizon.
        entries: (organization, owner) -> its moments.
    """

    def __init__(
        self,
        horizon: int | None,
        *,
        folded_to: int = 0,
        entries: dict[tuple[str, str], Entry] | None = None,
    ) -> None:
        self.horizon = horizon
        self.folded_to = folded_to
        self.entries = entries if entries is not None else {}

    def add(self, placements: Iterable[Placement]) -> None:
        """Counts placements in."""
        for placement in placements:
            self._count(placement, placement.processors)

    def take_back(self, placements: Iterable[Placement]) -> None:
        """Undoes `add` of the same placements."""
        for placement in placements:
            self._count(placement, -placement.processors)

    def fold(self, to: int, crossing: Iterable[Placement]) -> None:
        """Moves the fold, forwards or backwards, to the time `to`.

        Args:
            to: the new fold.
            crossing: all placements with an event between the old and the new fold.
        """
        low, high = sorted((self.folded_to, to))
        sign = 1 if to >= self.folded_to else -1
        for placement in crossing:
            folded = self._entry(placement).folded
            for second, processors in _events(placement, sign * placement.processors):
                if low < second <= high:
                    folded.add(second, processors)
        self.folded_to = to

    def pairs(self, t: int) -> Iterator[tuple[str, str, int, int, int]]:
        """Yields (organization, owner, worth, parts, growth) for every pair.

        Worth is in part-seconds; parts are those completed by t and no older than the horizon, and
        growth is how many more they become in a second: in the d-th second after t worth gains
        parts + d·growth, until something starts or ends, or did so a horizon ago.

        Args:
            t: no event may lie after it, and with a horizon the fold must be at t − horizon.

        Raises:
            ValueError: the fold is elsewhere.
        """
        if self.horizon is not None and self.folded_to != t - self.horizon:
            raise ValueError(f"the ledger is folded to {self.folded_to}, not {t - self.horizon}")
        for (organization, owner), entry in self.entries.items():
            total, folded = entry.total, entry.folded
            worth, parts, growth = total.worth(t), total.parts(t), total.processors
            if self.horizon is not None:
                worth -= folded.worth(t - self.horizon)
                parts -= folded.parts(t - self.horizon)
                growth -= folded.processors
            yield organization, owner, worth, parts, growth

    def standings(self, t: int, organizations: Iterable[str]) -> dict[str, Standing]:
        """Standing at t of the named organizations; see `pairs` for what t may be."""
        names = list(organizations)
        contribution, utility, completed = (dict.fromkeys(names, 0) for _ in range(3))
        for organization, owner, worth, parts, _ in self.pairs(t):
            if organization in utility:
                utility[organization] += worth
                completed[organization] += parts
            if owner in contribution:
                contribution[owner] += worth
        return {
            name: Standing(contribution[name], utility[name], completed[name]) for name in names
        }

    def courses(self, t: int, organizations: Iterable[str]) -> dict[str, Course]:
        """Course from t on of the named organizations' balances; see `pairs` for what t may be."""
        names = list(organizations)
        balance, slope, bend = (dict.fromkeys(names, 0) for _ in range(3))
        for organization, owner, *changes in self.pairs(t):
            for sums, change in zip((balance, slope, bend), changes, strict=True):
                if owner in sums:
                    sums[owner] += change
                if organization in sums:
                    sums[organization] -= change
        return {name: Course(balance[name], slope[name], bend[name]) for name in names}

    def _count(self, placement: Placement, processors: int) -> None:
        entry = self._entry(placement)
        for second, change in _events(placement, processors):
            entry.total.add(second, change)
            if second <= self.folded_to:
                entry.folded.add(second, change)

    def _entry(self, placement: Placement) -> Entry:
        return self.entries.setdefault((placement.organization, placement.owner), Entry())


def _events(placement: Placement, processors: int) -> Iterator[tuple[int, int]]:
    yield placement.begin, processors
    if placement.end is not None:
        yield placement.end, -processors
