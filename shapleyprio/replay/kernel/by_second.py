"""Keys of Ref's lattice at single seconds: rough ones, and exact ones where these are too near.

Most choices are between organizations whose keys are far apart. A rough key is P(C∖u) + ψ_u of
`lattice`, rounded. Potentials are kept for a few seconds of a block, and in between taken from
straight lines. A value grows by the parts completed, and these by as many as processors are busy,
from 0 to m. So a value lies at most m·s²/8 below the line between two points s seconds apart, and a
potential, the sum of values times weights that add up to 1 + 1/2 + … + 1/|C|, so many times that.

Keys that differ by no more than that and what rounding may have done are found exactly: R(C) is a
sum over all subsets of C, of which each of s members weighs (s−1)!·(|C|−s)!. Subsets without any
candidate are in the keys of all of them, and those with all candidates in no key: only subsets with
some of them are looked at. Their values follow from their notes.
"""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.choice import is_candidate
from shapleyprio.replay.kernel.horizon import utility_at
from shapleyprio.replay.kernel.keys import BySecond, Ints, Keys, Notes
from shapleyprio.replay.kernel.state import Coalitions
from shapleyprio.replay.kernel.values import moments_worth
from shapleyprio.replay.kernel.wide import difference

SECONDS_FOR_A_VALUE = 2
"""A value takes as long by second as so many seconds of a row."""


@inlined
def is_cheaper(asked: int, rows: Ints) -> bool:
    """Returns whether so many values by second are found sooner than rows of a block."""
    return bool(asked * SECONDS_FOR_A_VALUE < rows.shape[0] * rows.shape[1])


@inlined
def least_key_by_second(state: Coalitions, keys: Keys, c: int, t: int) -> int:
    """Chooses as `choice.least_key` does."""
    by, k = keys.by_second, state.utility.shape[1]
    best, candidates = _least_rough(state, keys, c, t)
    if candidates & (candidates - 1) == 0:
        return best
    by.asked[0] += 1 << by.members[c]
    _add_up(keys.notes, by, c, candidates, t)
    best = -1
    for u in range(k):
        if (candidates >> u) & 1:
            by.exact[u] += keys.factor[c] * utility_at(state, c, u, t)
            by.exact[u] *= keys.inverse[c]
            if best < 0 or difference(by.exact[u], by.exact[best]) < 0:
                best = u
    return best


@inlined
def _least_rough(state: Coalitions, keys: Keys, c: int, t: int) -> tuple[int, int]:
    """Returns who has the least rough key, and the bits of all who may have the least exact one."""
    by, begin, k = keys.by_second, keys.begin[0], state.utility.shape[1]
    if by.made[0] < c:
        make_potentials(keys.notes, by, c, begin)
    bits = by.cell_bits[0]
    point = (t - begin) >> bits
    part = float(t - begin - (point << bits)) / float(1 << bits)
    best, candidates = -1, 0
    for u in range(k):
        if is_candidate(state, c, t, u):
            before, behind = by.potential[c ^ (1 << u), point : point + 2]
            by.rough[u] = before + (behind - before) * part + float(utility_at(state, c, u, t))
            candidates |= 1 << u
            if best < 0 or by.rough[u] < by.rough[best]:
                best = u
    nearest = by.rough[best] + by.doubt[0]
    for u in range(k):
        if (candidates >> u) & 1 and by.rough[u] > nearest:
            candidates ^= 1 << u
    return best, candidates


@kernel
def make_potentials(notes: Notes, by: BySecond, last: int, begin: int) -> None:
    """Makes the potentials of all coalitions with smaller numbers that have none yet."""
    entries, potential, cell = notes.entries, by.potential, 1 << by.cell_bits[0]
    points = potential.shape[1]
    for c in range(by.made[0], last):
        place, t = notes.first[c], begin
        for point in range(points):
            while entries[place + 1, 0] < t:
                place += 1
            potential[c, point] = float(moments_worth(entries, place, t))
            t += cell
        left = c
        while left != 0:
            smaller = c ^ (left & -left)
            for point in range(points):
                potential[c, point] += potential[smaller, point]
            left &= left - 1
        for point in range(points):
            potential[c, point] /= float(by.members[c])
    by.made[0] = last


@kernel
def _add_up(notes: Notes, by: BySecond, c: int, candidates: int, t: int) -> None:
    """Adds up keys of the candidates modulo 2^64, without the values that are in all of them."""
    entries, members = notes.entries, by.members
    weights = by.weights[members[c]]
    by.exact[:] = 0
    others = c & ~candidates
    some = candidates & -candidates
    while some != candidates:
        total, rest = 0, 0
        while True:
            subset = some | rest
            place = notes.first[subset]
            while entries[place + 1, 0] < t:
                place += 1
            total += weights[members[subset]] * moments_worth(entries, place, t)
            if rest == others:
                break
            rest = (rest - others) & others
        for u in range(len(by.exact)):
            if ((candidates & ~some) >> u) & 1:
                by.exact[u] += total
        some = (some - candidates) & candidates
