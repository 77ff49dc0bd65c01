"""Stability: which coalitions would have had more alone, with their own processors.

gain(C) = v(C) − Σ_{u∈C} ψ(u), which cooperative game theory calls the excess of C: by how much the
utility of its members would have been larger, had they parted from the others and shared their
processors by Ref among themselves. A schedule is stable (in the core) if no coalition gains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from shapleyprio.replay.engine.schedule import CoalitionValues
from shapleyprio.replay.measures.measures import Measures


@dataclass(frozen=True, slots=True, kw_only=True)
class Coalition:
    """What some organizations had, and what they would have had alone.

    Attributes:
        members: indices of the organizations, ascending.
        alone: v(C), in part-seconds.
        got: Σψ of the members, in part-seconds.
        fair: Σψ of the members in the fair schedule of all, in part-seconds.
        parts: unit-size parts of theirs that the fair schedule completes.
    """

    members: tuple[int, ...]
    alone: int
    got: int
    fair: int
    parts: int

    @property
    def gain(self) -> int:
        """Part-seconds that they would have had more alone; less, if negative."""
        return self.alone - self.got

    @property
    def relative_gain(self) -> Fraction | None:
        """The gain for each part-second they got; None if they got nothing."""
        return Fraction(self.gain, self.got) if self.got else None

    @property
    def earlier(self) -> Fraction | None:
        """Seconds by which a part of theirs would have come earlier on average; None without."""
        return Fraction(self.gain, self.parts) if self.parts else None

    @property
    def earlier_if_fair(self) -> Fraction | None:
        """As `earlier`, had they stayed and had the schedule been fair."""
        return Fraction(self.fair - self.got, self.parts) if self.parts else None

    def named(self, organizations: Sequence[str]) -> str:
        """Returns its members' names, or those of the others where that is shorter."""
        missing = [name for u, name in enumerate(organizations) if u not in self.members]
        if len(missing) < len(self.members) - 1:
            return f"all but {' + '.join(missing)}"
        return " + ".join(organizations[u] for u in self.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """Who would have left, given a schedule.

    Attributes:
        coalitions: how many were looked at; all organizations together are none of them.
        gaining: how many of them would have had more alone.
        strongest: with the largest gain, of several the smallest, then the one listed first; None
            if none gains.
        strongest_relative: with the largest relative gain, chosen likewise.
        organizations: each alone.
        everybody: all together: their gain is what the same processors would have yielded under
            the reference, which is no reason to leave.
    """

    coalitions: int
    gaining: int
    strongest: Coalition | None
    strongest_relative: Coalition | None
    organizations: tuple[Coalition, ...]
    everybody: Coalition


def stability(values: CoalitionValues, measures: Measures, reference: Measures) -> Stability:
    """Holds a schedule against what coalitions have alone.

    Args:
        values: of coalitions, among them every single organization and all together.
        measures: of the schedule.
        reference: of the fair schedule of the same workload.
    """
    k = len(measures.utilities)
    coalitions = list(_coalitions(values, measures, reference))
    gaining = [
        coalition for coalition in coalitions if coalition.gain > 0 and len(coalition.members) < k
    ]
    single = {
        coalition.members: coalition for coalition in coalitions if len(coalition.members) == 1
    }
    return Stability(
        coalitions=sum(len(coalition.members) < k for coalition in coalitions),
        gaining=len(gaining),
        strongest=_first(gaining, lambda coalition: Fraction(coalition.gain)),
        strongest_relative=_most_relative(gaining),
        organizations=tuple(single[(u,)] for u in range(k)),
        everybody=next(coalition for coalition in coalitions if len(coalition.members) == k),
    )


def _coalitions(
    values: CoalitionValues, measures: Measures, reference: Measures
) -> Iterator[Coalition]:
    for bits, alone in zip(values.members.tolist(), values.values.tolist(), strict=True):
        members = tuple(u for u in range(len(measures.utilities)) if bits >> u & 1)
        yield Coalition(
            members=members,
            alone=alone,
            got=sum(measures.utilities[u] for u in members),
            fair=sum(reference.utilities[u] for u in members),
            parts=sum(reference.parts[u] for u in members),
        )


def _most_relative(gaining: Sequence[Coalition]) -> Coalition | None:
    nothing = [coalition for coalition in gaining if coalition.relative_gain is None]
    if nothing:  # any gain is infinitely more than nothing
        return _first(nothing, lambda coalition: Fraction(coalition.gain))
    return _first(gaining, lambda coalition: coalition.relative_gain or Fraction(0))


def _first(
    coalitions: Iterable[Coalition], size: Callable[[Coalition], Fraction]
) -> Coalition | None:
    return min(
        coalitions,
        key=lambda coalition: (-size(coalition), len(coalition.members), coalition.members),
        default=None,
    )
