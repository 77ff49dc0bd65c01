"""Keys of Ref's lattice at the seconds for which they are asked, where these are few.

Without rows, R(C) of `lattice` at one second is a sum over all subsets of C, of which each of s
members weighs (s−1)!·(|C|−s)!. Subsets without any candidate are in the keys of all of them, and
those with all candidates in no key: only subsets with some of them are looked at. Their values
follow from their notes.
"""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.choice import is_candidate
from shapleyprio.replay.kernel.horizon import utility_at
from shapleyprio.replay.kernel.keys import BySecond, Keys, Notes
from shapleyprio.replay.kernel.state import Coalitions
from shapleyprio.replay.kernel.wide import HALF, MASK

MOST_ORGANIZATIONS = 12
"""With so many, the upper and the lower halves of all weighted values still add up to 63 bits."""

SECONDS_FOR_A_VALUE = 4
"""A value takes as long by second as so many seconds of a row."""


@inlined
def note_asked(keys: Keys, c: int) -> None:
    """Counts what a choice in coalition c takes by second."""
    by = keys.by_second
    if len(by.members) != 0:
        by.asked[0] += 1 << by.members[c]


@inlined
def is_cheaper(keys: Keys) -> bool:
    """Returns whether what the last block asked for had been found sooner by second."""
    by, rows = keys.by_second, keys.rows
    return bool(by.asked[0] * SECONDS_FOR_A_VALUE < rows.shape[0] * rows.shape[1])


@inlined
def least_key_by_second(state: Coalitions, keys: Keys, c: int, t: int) -> int:
    """Chooses as `choice.least_key` does, by the same keys without those common to all."""
    candidates, best, k = 0, -1, state.utility.shape[1]
    for u in range(k):
        if is_candidate(state, c, t, u):
            candidates |= 1 << u
            best = u
    if candidates & (candidates - 1) == 0:
        return best
    by = keys.by_second
    _add_up(keys.notes, by, c, candidates, t)
    best, best_high, best_low = -1, 0, 0
    for u in range(k):
        if (candidates >> u) & 1:
            utility = utility_at(state, c, u, t)
            low = by.sums[u, 1] + keys.factor[c] * (utility & MASK)
            high = by.sums[u, 0] + keys.factor[c] * (utility >> HALF) + (low >> HALF)
            low &= MASK
            if best < 0 or high < best_high or (high == best_high and low < best_low):
                best, best_high, best_low = u, high, low
    return best


@kernel
def _add_up(notes: Notes, by: BySecond, c: int, candidates: int, t: int) -> None:
    """Adds values of subsets of c up to the keys of the candidates that they lack."""
    entries, passed, members = notes.entries, by.passed, by.members
    weights = by.weights[members[c]]
    if by.passed_by[0] != c:
        by.passed_by[0] = c
        for smaller in range(c):
            passed[smaller] = notes.first[smaller]
    by.sums[:] = 0
    others, triangle = c & ~candidates, (t * (t + 1)) >> 1
    some = candidates & -candidates
    while some != candidates:
        high, low, rest = 0, 0, 0
        while True:
            subset = some | rest
            place = passed[subset]
            while entries[place + 1, 0] < t:
                place += 1
            passed[subset] = place
            value = entries[place, 1] * triangle - entries[place, 2] * t + entries[place, 3]
            weight = weights[members[subset]]
            high += weight * (value >> HALF)
            low += weight * (value & MASK)
            if rest == others:
                break
            rest = (rest - others) & others
        for u in range(len(by.sums)):
            if ((candidates & ~some) >> u) & 1:
                by.sums[u, 0] += high
                by.sums[u, 1] += low
        some = (some - candidates) & candidates
