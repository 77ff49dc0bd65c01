"""The values of coalitions over a block of seconds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shapleyprio.fairness.utility import Moments
from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.horizon import next_due, take_due, value_at, value_wide
from shapleyprio.replay.kernel.keys import Ints, Keys, Notes
from shapleyprio.replay.kernel.notes import count
from shapleyprio.replay.kernel.state import Coalitions
from shapleyprio.replay.kernel.wide import is_wide, plus, product, rounded, times, worth_wide
from shapleyprio.replay.kernel.worth import add


@inlined
def saturate(state: Coalitions, keys: Keys, c: int, t: int) -> None:
    """Subtracts from coalition c what is older than the horizon at t; see `state.PastEvents`."""
    if next_due(state, c) <= t:
        _saturate(state, keys, c, t)


@kernel
def _saturate(state: Coalitions, keys: Keys, c: int, t: int) -> None:
    past, k = state.past, state.utility.shape[1]
    while past.due[c] <= t:
        second = past.due[c]
        whose, processors = take_due(past, c)
        if whose >= k:
            add(past.contribution[whose - k], second, processors)
        else:
            count(state, keys, c, past.total[c], second, processors)
            add(past.utility[c, whose], second, processors)


@inlined
def add_value(state: Coalitions, keys: Keys, c: int, factor: int, row: int) -> None:
    """Adds factor·v(c, t) to a row of keys, for all t of the block, by the list of coalition c."""
    if is_wide(state):
        _add_value_wide(keys, c, factor, row)
    else:
        _add_value(keys.notes, c, factor, keys.rows[row], keys.base, keys.slope, row, keys.begin[0])


@kernel
def _add_value(
    notes: Notes,
    c: int,
    factor: int,
    target: Ints,
    base: NDArray[np.float64],
    slope: NDArray[np.float64],
    row: int,
    begin: int,
) -> None:
    """Adds the polynomial of each stretch between changes."""
    entries, place = notes.entries, notes.first[c]
    value, done = moments_worth(entries, place, begin), gaining(entries, place, begin)
    base[row] += float(factor) * float(value)
    slope[row] += float(factor) * float(done)
    second, length = 0, len(target)
    while second < length:
        until = min(entries[place + 1, 0] - begin + 1, length)
        value = factor * moments_worth(entries, place, begin + second)
        done = factor * gaining(entries, place, begin + second)
        busy = factor * entries[place, 1]
        for later in range(until - second):
            grown = busy * ((later * (later + 1)) >> 1)
            target[second + later] += value + later * done + grown
        second = until
        place += 1


@inlined
def moments_worth(entries: Ints, place: int, t: int) -> int:
    """Returns a value at t by an entry of notes; one limb of it."""
    value: int = (
        entries[place, 1] * ((t * (t + 1)) >> 1) - entries[place, 2] * t + entries[place, 3]
    )
    return value


@inlined
def gaining(entries: Ints, place: int, t: int) -> int:
    """Returns how many completed parts gain worth at t, by an entry of notes."""
    completed: int = entries[place, 1] * t - entries[place, 2]
    return completed


@kernel
def _add_value_wide(keys: Keys, c: int, factor: int, row: int) -> None:
    """Adds what a value of two limbs is at each second.

    From one second to the next v grows by the parts completed by then, and those by the
    processors that were busy in between; with a horizon less the parts that came to be older, and
    less the processors that were busy a horizon ago.
    """
    begin, entries, place = keys.begin[0], keys.notes.entries, keys.notes.first[c]
    value_high, value = worth_wide(entries[place, 1:], begin)
    done, busy = gaining(entries, place, begin), entries[place, 1]
    keys.base[row] += float(factor) * rounded(value_high, value)
    keys.slope[row] += float(factor) * float(done)
    value_high, value = times(value_high, value, factor)
    done_high, done = product(done, factor)
    busy_high, busy = product(busy, factor)
    target, target_high = keys.rows[row], keys.high[row]
    for second in range(len(target)):
        target_high[second], target[second] = plus(
            target_high[second], target[second], value_high, value
        )
        if entries[place + 1, 0] == begin + second:
            place += 1
            busy_high, busy = product(entries[place, 1], factor)
        done_high, done = plus(done_high, done, busy_high, busy)
        value_high, value = plus(value_high, value, done_high, done)


@kernel
def value_coalition(state: Coalitions, keys: Keys, c: int) -> None:
    """Sums R(c) over the block, from those of the coalitions with one member less (`lattice`)."""
    if is_wide(state):
        clear_row(keys, c)
        for u in range(state.utility.shape[1]):
            if (c >> u) & 1:
                _add_row_wide(keys, c, c ^ (1 << u))
    else:
        _sum_smaller(keys, c)
    add_value(state, keys, c, keys.factor[c], c)


@inlined
def _sum_smaller(keys: Keys, c: int) -> None:
    """Sums rows of keys of one limb, four at a time; that of nobody's coalition is empty."""
    base, slope, left = 0.0, 0.0, c
    while left != 0:
        again = left != c
        one, left = _next_smaller(c, left)
        two, left = _next_smaller(c, left)
        three, left = _next_smaller(c, left)
        four, left = _next_smaller(c, left)
        base += keys.base[one] + keys.base[two] + keys.base[three] + keys.base[four]
        slope += keys.slope[one] + keys.slope[two] + keys.slope[three] + keys.slope[four]
        _sum_four(keys.rows, c, again, one, two, three, four)
    keys.base[c], keys.slope[c] = base, slope


@inlined
def _next_smaller(c: int, left: int) -> tuple[int, int]:
    """Returns c without the first member that is left, or nobody, and the members then left."""
    return (c ^ (left & -left) if left != 0 else 0), left & (left - 1)


@kernel
def _sum_four(rows: Ints, row: int, again: bool, one: int, two: int, three: int, four: int) -> None:
    """Writes the sum of four rows to another one, or adds it to what is there."""
    target, a, b, c, d = rows[row], rows[one], rows[two], rows[three], rows[four]
    if again:
        for second in range(len(target)):
            target[second] += (a[second] + b[second]) + (c[second] + d[second])
    else:
        for second in range(len(target)):
            target[second] = (a[second] + b[second]) + (c[second] + d[second])


@inlined
def _add_row_wide(keys: Keys, row: int, source: int) -> None:
    """Adds one row of keys of two limbs to another one."""
    keys.base[row] += keys.base[source]
    keys.slope[row] += keys.slope[source]
    target, added = keys.rows[row], keys.rows[source]
    target_high, added_high = keys.high[row], keys.high[source]
    for second in range(len(target)):
        target_high[second], target[second] = plus(
            target_high[second], target[second], added_high[second], added[second]
        )


@inlined
def clear_row(keys: Keys, row: int) -> None:
    """Empties a row of keys."""
    keys.rows[row, :] = 0
    keys.high[row, :] = 0
    keys.base[row] = 0.0
    keys.slope[row] = 0.0


def values_at(state: Coalitions, t: int) -> Ints:
    """Returns v(c, t) of all coalitions, for a t at or after everything that happened.

    Returns:
        int64[c], or Python's integers (an array of objects) if they may exceed 63 bits.
    """
    limbs = np.zeros((len(state.free), 2), dtype=np.int64)
    _value_at(state, t, limbs)
    return whole_numbers(limbs[:, 1], limbs[:, 0]) if is_wide(state) else limbs[:, 0]


def whole_numbers(high: Ints, low: Ints) -> Ints:
    """Returns numbers of two limbs as Python's integers, in an array of objects."""
    whole: Ints = (high.astype(object) << 64) + low.astype(np.uint64).astype(object)
    return whole


def exact_moments(row: Ints) -> Moments:
    """Returns moments of the engine as those of `shapleyprio.fairness.utility`."""
    processors, first, halved, *high = row.tolist()
    if high:
        halved = (high[0] << 64) + halved % 2**64
    return Moments(processors, first, 2 * halved + first)


def exact_worths(moments: Ints, older: Ints, t: int) -> list[int]:
    """Returns worths at t, for a t at or after everything that happened.

    Args:
        moments: [n, 3 or 4], of events.
        older: [n, 3 or 4], of those a horizon old (`state.PastEvents`); [0, 3 or 4] without one.
        t: second of the window.
    """
    worths = [exact_moments(row).worth(t) for row in moments]
    if len(older) == 0:
        return worths
    wraps = 2 ** (64 * (moments.shape[1] - 2))
    return [
        (worth - exact_moments(row).worth(t)) % wraps
        for worth, row in zip(worths, older, strict=True)
    ]


@kernel
def _value_at(state: Coalitions, t: int, values: Ints) -> None:
    for c in range(len(values)):
        if is_wide(state):
            values[c, 1], values[c, 0] = value_wide(state, c, t)
        else:
            values[c, 0] = value_at(state, c, t)
