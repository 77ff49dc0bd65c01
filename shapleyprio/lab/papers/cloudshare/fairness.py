"""The fairness of algorithms: total waits against their Shapley value (CloudShare, section 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from shapleyprio.fairness.shapley import shapley
from shapleyprio.lab.papers.cloudshare.brokers import total_waits
from shapleyprio.lab.papers.cloudshare.scenarios import Federation


@dataclass(frozen=True, slots=True)
class PeriodFairness:
    """What an algorithm made of a federation.

    Attributes:
        waits: seconds that each organization's units waited in all, in the coalition of all.
        fair_waits: the Shapley value of that, exactly; it may be negative for who only lends.
    """

    waits: tuple[int, ...]
    fair_waits: tuple[Fraction, ...]

    @property
    def unfairness(self) -> Fraction:
        """Σ|wait − fair wait|, in seconds: the distance in the Manhattan metric."""
        pairs = zip(self.waits, self.fair_waits, strict=True)
        return sum((abs(wait - fair) for wait, fair in pairs), Fraction(0))


def fairness_of(algorithm: str, federation: Federation, *, seed: int = 0) -> PeriodFairness:
    """Simulates all 2^k − 1 coalitions under an algorithm.

    A coalition's value is the total wait of its members in its own simulation; the Shapley value
    of these is the fair wait.

    Raises:
        ReplayError: as for `total_waits`.
    """
    owned, federated, background = federation.owned, federation.federated, federation.background
    coalitions = range(1, 2 ** len(owned))
    waits = [
        total_waits(algorithm, coalition, owned, federated, background, seed=seed)
        for coalition in coalitions
    ]
    return PeriodFairness(waits[-1], shapley([0, *map(sum, waits)]))


def points(unfairness: Mapping[str, Fraction]) -> dict[str, int]:
    """Counts the rivals that each algorithm is more fair than; of equals none gets a point.

    >>> points({"A": Fraction(60), "B": Fraction(80), "C": Fraction(60)})
    {'A': 1, 'B': 0, 'C': 1}
    """
    return {
        algorithm: sum(mine < other for other in unfairness.values())
        for algorithm, mine in unfairness.items()
    }
