"""Who would gain by leaving, with their own processors, or by being split in two.

gain(C) = v(C) − Σ_{u∈C} ψ(u), which cooperative game theory calls the excess of C: by how much the
utility of its members would have been larger, had they parted from the others and shared their
processors by Ref among themselves. A schedule is stable (in the core) if no coalition gains.

A ranking sees members, not who is behind them. An organization gains if one member without nodes
has its urgent jobs, and another one the nodes and the rest of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.engine.schedule import CoalitionValues
from shapleyprio.replay.measures.measures import Measures
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload


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
    """

    coalitions: int
    gaining: int
    strongest: Coalition | None
    strongest_relative: Coalition | None
    organizations: tuple[Coalition, ...]

    def reasons(self, organizations: Sequence[str]) -> Iterator[tuple[str, Coalition]]:
        """Yields the strongest reasons to leave, each with who has it; none if nobody gains.

        Args:
            organizations: their names.
        """
        strongest, relative = self.strongest, self.strongest_relative
        if strongest is not None:
            yield strongest.named(organizations), strongest
        if relative is not None and relative != strongest:
            yield f"{relative.named(organizations)} (relatively)", relative


def stability(values: CoalitionValues, measures: Measures, reference: Measures) -> Stability:
    """Holds a schedule against what coalitions have alone.

    Args:
        values: of coalitions, among them every single organization.
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


NEXT_TO_NOTHING = Fraction(1, 10)
"""A member brings next to nothing whose part of all processors is below this much of its part of
all work."""

ALWAYS = Fraction(9, 10)
"""Part of a member's jobs, of those that came while others waited, that are to have gone first."""

LEAST_JOBS = 20
"""Jobs that came while others waited; of a member with fewer of them nothing is said."""


@dataclass(frozen=True, slots=True)
class GoingFirst:
    """A member that brings next to nothing, and whose jobs go before others that came sooner.

    Attributes:
        organization: its index.
        brings: its part of all processors.
        uses: its part of the processor-seconds that all jobs of the window ask for.
        came: its jobs that came while a job of others waited which was no wider.
        went_first: how many of these began before such a job.
    """

    organization: int
    brings: Fraction
    uses: Fraction
    came: int
    went_first: int


def going_first(workload: Workload) -> tuple[GoingFirst, ...]:
    """Returns the members of a recorded schedule that bring next to nothing and always go first.

    Jobs that a narrower one passes do not count: that is backfilling, whoever's the jobs are.
    """
    began = np.where(workload.start == UNKNOWN, workload.window.length, workload.start)
    work = [0] * len(workload.organizations)
    jobs = (workload.organization, workload.processors, workload.processing_time)
    for u, processors, seconds in zip(*(column.tolist() for column in jobs), strict=True):
        work[u] += processors * seconds
    if not sum(work):
        return ()
    found = []
    for u, used in enumerate(work):
        brings = Fraction(int(workload.owned[u]), int(workload.owned.sum()))
        uses = Fraction(used, sum(work))
        if brings < NEXT_TO_NOTHING * uses:
            came, went_first = _passed(workload, began, u)
            if came >= LEAST_JOBS and went_first >= ALWAYS * came:
                found.append(GoingFirst(u, brings, uses, came, went_first))
    return tuple(found)


def _passed(workload: Workload, began: NDArray[np.int64], organization: int) -> tuple[int, int]:
    """Counts a member's jobs that came while others waited, and those that began before these."""
    ours = workload.organization == organization
    by_release = np.flatnonzero(~ours)
    by_release = by_release[np.argsort(workload.release[by_release], kind="stable")]
    came = went_first = 0
    for width in np.unique(workload.processors[ours]):
        others = by_release[workload.processors[by_release] <= width]
        latest = np.maximum.accumulate(np.append(-1, began[others]))
        mine = np.flatnonzero(ours & (workload.processors == width))
        sooner = np.searchsorted(workload.release[others], workload.release[mine])
        waiting_until = latest[sooner]  # the last begin of those that were released before
        waited = waiting_until > workload.release[mine]
        came += int(np.count_nonzero(waited))
        went_first += int(np.count_nonzero(waited & (began[mine] < waiting_until)))
    return came, went_first
