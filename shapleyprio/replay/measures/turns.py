"""How often a schedule starts what the rule of `ref` would not, from where the schedule is.

Unfairness (Δψ/p_tot) says how much harm came of a schedule as a whole, and one decision can make
most of it: everything after it is another schedule. Here each decision is judged by itself, from
what had come of those before it. A moment at which jobs start is contested if the order of the
organizations decides what starts: if the rule turned upside down, with the least φ − ψ first, would
start something that the rule would not, or the schedule does. It is out of turn if the schedule
does.

Every proper subset of the consortium keeps the schedule that it has under `ref`; the consortium
itself has the schedule that is looked at. φ_u = P(N) − P(N∖u) by Hart & Mas-Colell's potential, and
v(N) enters every φ_u alike, in P(N): whom the largest φ − ψ is owed follows from the subsets and ψ.
Where organizations stand together that is so of unions, and within each (`native/owen.h`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from math import comb, lcm

import numpy as np

from shapleyprio.fairness.shapley import owen_denominator, owen_numerators
from shapleyprio.replay.engine import lattice
from shapleyprio.replay.engine.beginning import ref_world
from shapleyprio.replay.engine.engine import values_at
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.lattice import with_more_room
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.measures.path import JudgedMoment, JudgedSystem, SchedulePath, starts
from shapleyprio.replay.native import packed
from shapleyprio.replay.workloads.workload import Workload

LIMB = 31
"""Bits of the pieces in which values are summed."""


class Owed:
    """Brings all coalitions' own schedules from moment to moment.

    Raises:
        PolicyError: there are too many organizations, processors or jobs.
    """

    def __init__(self, workload: Workload) -> None:
        k, unions = len(workload.organizations), workload.unions
        world = ref_world(workload, 0, recorded=False)
        self._world = packed(world._replace(state=packed(world.state)))
        self._seconds = world.keys.rows.shape[1]
        blocks = -(-workload.window.length // self._seconds)
        self._arriving = lattice.arriving(world.jobs, blocks, self._seconds)
        self._choices = np.zeros(1, dtype=np.int64)
        self._now = -1
        self._among: _Among | _AmongUnions = _Among(k) if unions is None else _AmongUnions(unions)

    def order(self, t: int, utilities: Sequence[int], waiting: Sequence[int]) -> list[int]:
        """Returns the organizations that wait, the one with the largest φ − ψ first.

        Args:
            t: second of the window, not before that of the last call.
            utilities: ψ of each organization at t, in the schedule that is looked at.
            waiting: ascending, since ties go to the one that is listed first.
        """
        if t != self._now:
            self._advance(t)
        return self._among.order(utilities, waiting)

    def _advance(self, t: int) -> None:
        first, last = max(self._now, 0) // self._seconds, t // self._seconds
        self._run(first, last, last * self._seconds)
        if t > last * self._seconds:
            self._run(last, last + 1, t)
        self._among.enter(values_at(self._world.state, t))
        self._now = t

    def _run(self, first: int, last: int, until: int) -> None:
        while first < last:
            first = lattice.run_blocks(
                self._world, self._arriving, first, last, until, self._choices
            )
            if first < last:
                state = packed(with_more_room(self._world.state, self._seconds))
                self._world = packed(self._world._replace(state=state))


class _Among:
    """Orders organizations that stand alone."""

    def __init__(self, k: int) -> None:
        self._scale = lcm(*range(1, k))
        self._shares = _shares(k, self._scale)
        self._potentials: list[int] = []

    def enter(self, values: Ints) -> None:
        """Takes the values of all coalitions."""
        self._potentials = _weighted(self._shares, values)

    def order(self, utilities: Sequence[int], waiting: Sequence[int]) -> list[int]:
        return sorted(waiting, key=lambda u: self._potentials[u] + self._scale * utilities[u])


class _AmongUnions:
    """Orders unions, and the members of each; v(N) is the same in what is compared."""

    def __init__(self, unions: Sequence[int]) -> None:
        self._unions, self._scale = unions, owen_denominator(unions)
        self._shares: list[int] = []

    def enter(self, values: Ints) -> None:
        """Takes the values of all coalitions."""
        self._shares = owen_numerators(values.tolist(), self._unions)

    def order(self, utilities: Sequence[int], waiting: Sequence[int]) -> list[int]:
        """Does what `Owed.order` says."""
        owed = [
            share - self._scale * utility
            for share, utility in zip(self._shares, utilities, strict=True)
        ]
        of_union: Counter[int] = Counter()
        for one, balance in zip(self._unions, owed, strict=True):
            of_union[one] += balance
        return sorted(
            waiting, key=lambda u: (-of_union[self._unions[u]], self._unions[u], -owed[u])
        )


def _shares(k: int, scale: int) -> Ints:
    """Returns by how much each coalition's value counts in each P(N∖u), times the scale: [k, 2^k].

    P(D) is the sum of v(C) / (|C|·binom(|D|, |C|)) over all subsets C of D, and all that is divided
    by divides lcm(1, …, k − 1).
    """
    coalitions = np.arange(2**k)
    size = np.bitwise_count(coalitions).astype(np.int64)
    by_size = [0, *(scale // (n * comb(k - 1, n)) for n in range(1, k)), 0]
    without = (coalitions >> np.arange(k)[:, None]) & 1 == 0
    return np.where(without, np.array(by_size, dtype=np.int64)[size], 0)


def _weighted(shares: Ints, values: Ints) -> list[int]:
    """Returns the exact sums of shares times values.

    The shares of a row add up to less than 2^31 with 20 organizations, so 31 bits of each value
    are summed at a time.
    """
    sums, shift = [0] * len(shares), 0
    while values.any():
        piece = (values & (2**LIMB - 1)).astype(np.int64)
        found = (shares @ piece).tolist()
        sums = [total + (more << shift) for total, more in zip(sums, found, strict=True)]
        values = values >> LIMB
        shift += LIMB
    return sums


MOST_STARTS = 2**20
"""Jobs times coalitions up to which decisions are judged: some seconds for each schedule."""

TOO_MANY = (
    f"decisions are judged as long as there are no more than {MOST_STARTS:,} jobs times 2^k, with "
    "k organizations"
)
"""Why there are no turns where there is unfairness."""


@dataclass(frozen=True, slots=True)
class Turns:
    """What was judged of a schedule, or of several together.

    Attributes:
        contested: moments at which the order of the organizations decided what started.
        out_of_turn: those at which something started that the rule of `ref` would not have.

    >>> (Turns(8, 1) + Turns(2, 1)).share
    Fraction(1, 5)
    """

    contested: int
    out_of_turn: int

    def __add__(self, other: Turns) -> Turns:
        """Counts the moments of both."""
        return Turns(self.contested + other.contested, self.out_of_turn + other.out_of_turn)

    @property
    def share(self) -> Fraction | None:
        """Part of the contested moments that were out of turn; None if none was contested."""
        return Fraction(self.out_of_turn, self.contested) if self.contested else None


def turns_of(workload: Workload, schedules: Sequence[Schedule]) -> tuple[Turns, ...] | None:
    """Judges the decisions of schedules of a workload, each from where that schedule is.

    Args:
        workload: what was scheduled, such that `ref` can schedule it as well.
        schedules: of any policies, or recorded.

    Returns:
        None if there are more than `MOST_STARTS` jobs times coalitions.

    Raises:
        PolicyError: `ref` cannot schedule it.
    """
    if len(workload.job) << len(workload.organizations) > MOST_STARTS:
        return None
    system, owed = JudgedSystem(workload), Owed(workload)
    paths = [SchedulePath(system, workload, schedule) for schedule in schedules]
    contested, out_of_turn = [0] * len(paths), [0] * len(paths)
    for t, number, moment in merge(*map(_numbered, range(len(paths)), paths), key=lambda of: of[0]):
        order = owed.order(t, paths[number].utilities(t), moment.waiting)
        fair = starts(system, moment, order)
        unfair = _exceeds(moment.started, fair)
        contested[number] += unfair or _exceeds(starts(system, moment, order[::-1]), fair)
        out_of_turn[number] += unfair
    return tuple(map(Turns, contested, out_of_turn))


def _numbered(number: int, path: SchedulePath) -> Iterator[tuple[int, int, JudgedMoment]]:
    return ((moment.t, number, moment) for moment in path.moments())


def _exceeds(started: Mapping[int, int], fair: Mapping[int, int]) -> bool:
    """Returns whether something is started that is not in `fair`."""
    return any(processors > fair.get(job, 0) for job, processors in started.items())
