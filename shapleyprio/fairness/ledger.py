"""The ledger: exact utility ψ and contribution φ̃ of every organization, at any time.

One entry for each pair of organization and owner holds what the owner's processors did for the
organization's jobs. An organization's ψ is the sum over its row, its φ̃ the sum over its column
(DirectContr), NOBODY's row left out: what unclaimed jobs used is not charged, so it earns nothing.
Hence Σφ̃ = Σψ by construction, over all members where every node is owned, else once NOBODY is
counted in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from shapleyprio.fairness.tenure import NOBODY, Allocation
from shapleyprio.fairness.worth import Moments, Trajectory


@dataclass(frozen=True, slots=True)
class Standing:
    """What an organization gave and got by some time t.

    Attributes:
        contribution: φ̃, worth of the parts that its processors executed for organizations' jobs, in
            part-seconds.
        utility: ψ, worth of the parts of its jobs, in part-seconds; NOBODY has none.
        parts: how many parts of its jobs were completed, no older than the horizon.
    """

    contribution: int
    utility: int
    parts: int

    @property
    def balance(self) -> int:
        """φ̃ − ψ: the higher, the sooner its next job should start."""
        return self.contribution - self.utility


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
    """Exact sums over allocations, changed by adding and subtracting allocations.

    Adding is commutative and subtracting its inverse, so the ledger depends on the allocations
    it holds and not on the order in which they came.

    Args:
        horizon: age in seconds from which a part gains nothing more, None for never.
        folded_to: the fold, a time up to which events also count as older than the horizon.
        entries: (organization, owner) -> its moments.
        until: second after which nothing counts: later events are left out, and what is at work
            then counts as stopped; None for never.

    Attributes:
        changed: pairs whose moments are other than in `entries` as given, or may be.
    """

    def __init__(
        self,
        horizon: int | None,
        *,
        folded_to: int = 0,
        entries: dict[tuple[str, str], Entry] | None = None,
        until: int | None = None,
    ) -> None:
        self.horizon = horizon
        self.until = until
        self.folded_to = folded_to
        self.entries = entries if entries is not None else {}
        self.changed: set[tuple[str, str]] = set()

    def add(self, allocations: Iterable[Allocation]) -> None:
        """Counts allocations in."""
        for allocation in allocations:
            self._count(allocation, allocation.processors)

    def subtract(self, allocations: Iterable[Allocation]) -> None:
        """Undoes `add` of the same allocations."""
        for allocation in allocations:
            self._count(allocation, -allocation.processors)

    def fold(self, to: int, crossing: Iterable[Allocation]) -> None:
        """Moves the fold, forwards or backwards, to the time `to`.

        Args:
            to: the new fold.
            crossing: all allocations with an event between the old and the new fold.
        """
        for allocation in crossing:
            self.cross(allocation, to)
        self.folded_to = to

    def cross(self, allocation: Allocation, to: int) -> None:
        """Moves the events of one allocation that lie between the fold and the time `to`."""
        low, high = sorted((self.folded_to, to))
        sign = 1 if to >= self.folded_to else -1
        folded = self._entry(allocation).folded
        for second, processors in self._events(allocation, sign * allocation.processors):
            if low < second <= high:
                folded.add(second, processors)

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
            total, folded = self._stopped(entry.total), entry.folded
            if self.until is not None and self.folded_to >= self.until:
                folded = self._stopped(folded)
            worth, parts, growth = total.worth(t), total.parts(t), total.processors
            if self.horizon is not None:
                worth -= folded.worth(t - self.horizon)
                parts -= folded.parts(t - self.horizon)
                growth -= folded.processors
            yield organization, owner, worth, parts, growth

    def trajectories(
        self, t: int, organizations: Iterable[str]
    ) -> dict[str, tuple[Trajectory, Trajectory]]:
        """Returns organization -> its contribution φ̃ and its utility ψ at t and later.

        Their rates are completed parts that gain worth, their accelerations processors at work;
        see `pairs` for what t may be.
        """
        names = list(organizations)
        contribution, utility = ({name: [0, 0, 0] for name in names} for _ in range(2))
        for organization, owner, worth, parts, growth in self.pairs(t):
            if organization == NOBODY:
                continue
            for total in (contribution.get(owner), utility.get(organization)):
                if total is not None:
                    total[0] += worth
                    total[1] += parts
                    total[2] += growth
        return {
            name: (Trajectory(*contribution[name]), Trajectory(*utility[name])) for name in names
        }

    def standings(self, t: int, organizations: Iterable[str]) -> dict[str, Standing]:
        """Returns the standing at t of the named organizations; see `pairs` for what t may be."""
        return {
            name: Standing(given.value, got.value, got.rate)
            for name, (given, got) in self.trajectories(t, organizations).items()
        }

    def executed(self, t: int, organizations: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Returns organization -> parts of its jobs of any age, and processors at work for it.

        Args:
            t: no event may lie after it.
            organizations: which.
        """
        found = {name: [0, 0] for name in organizations}
        for (organization, _), entry in self.entries.items():
            if (sums := found.get(organization)) is not None:
                total = self._stopped(entry.total)
                sums[0] += total.parts(t)
                sums[1] += total.processors
        return {name: (parts, running) for name, (parts, running) in found.items()}

    def completed(self, t: int) -> int:
        """Returns how many parts of any age, of all jobs, were completed by t, the last event."""
        return sum(self._stopped(entry.total).parts(t) for entry in self.entries.values())

    def _count(self, allocation: Allocation, processors: int) -> None:
        entry = self._entry(allocation)
        for second, change in self._events(allocation, processors):
            entry.total.add(second, change)
            if second <= self.folded_to:
                entry.folded.add(second, change)

    def _entry(self, allocation: Allocation) -> Entry:
        pair = (allocation.organization, allocation.owner)
        self.changed.add(pair)
        return self.entries.setdefault(pair, Entry())

    def _events(self, allocation: Allocation, processors: int) -> Iterator[tuple[int, int]]:
        for second, change in ((allocation.begin, processors), (allocation.end, -processors)):
            if second is not None and (self.until is None or second <= self.until):
                yield second, change

    def _stopped(self, moments: Moments) -> Moments:
        return moments if self.until is None else moments.stopped(self.until)
