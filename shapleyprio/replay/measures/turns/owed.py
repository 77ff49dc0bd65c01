"""By how much organizations are owed at moments of any schedule, by `ref`'s coalitions.

Every proper subset of the consortium keeps the schedule that it has under `ref`; the consortium
itself has the schedule that is looked at. φ_u = P(N) − P(N∖u) by Hart & Mas-Colell's potential, and
v(N) enters every φ_u alike, in P(N): whom the largest φ − ψ is owed follows from the subsets and ψ.
Where organizations stand together that is so of unions, and within each (`native/owen.h`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb, lcm

import numpy as np

from shapleyprio.fairness.owen import owen_denominator, owen_numerators
from shapleyprio.replay.engine import lattice
from shapleyprio.replay.engine.beginning import ref_world
from shapleyprio.replay.engine.horizon import with_more_room
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.values import values_at
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
