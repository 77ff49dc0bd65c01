"""Exact comparisons and worths in 64 bits."""

from __future__ import annotations

import numpy as np

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.keys import Ints
from shapleyprio.replay.kernel.wide import add_wide, difference, is_less

FAR_APART = 2.0**62
"""Rounded values that differ by more are compared by them, nearer ones by 64 bits."""


@inlined
def add(moments: Ints, second: int, processors: int) -> None:
    """Adds processors that start (or, negative, stop) working then; see `kernel.state`."""
    if len(moments) == 4:
        add_wide(moments, second, processors)
    else:
        moments[0] += processors
        moments[1] += processors * second
        moments[2] += processors * ((second * (second - 1)) >> 1)


@inlined
def worth(moments: Ints, t: int) -> int:
    """Returns the worth at t of all parts, in part-seconds (SPAA 2013, Eq. 3); one limb of it.

    A part executed at τ is worth T(t − τ) − T(t − τ − 1), with T(n) = n(n+1)/2, and T(t − τ) is
    T(t) − tτ + T(τ − 1).
    """
    total: int = moments[0] * ((t * (t + 1)) >> 1) - moments[1] * t + moments[2]
    return total


@inlined
def parts(moments: Ints, t: int) -> int:
    """Returns the unit-size parts completed by t."""
    completed: int = moments[0] * t - moments[1]
    return completed


@inlined
def precedes(exact: int, rounded: float, best_exact: int, best_rounded: float) -> bool:
    """Returns whether a value known modulo 2^64 and roughly is less than another such value.

    Holds as long as the rounded difference is wrong by less than 2^62.
    """
    return is_less(rounded - best_rounded, FAR_APART, difference(exact, best_exact))


@inlined
def less_by_share(used: int, share: int, best_used: int, best_share: int) -> bool:
    """Returns whether used / share < best_used / best_share, for numbers below 2^63.

    Without a share one comes after all that have one, and among its like by what it used.
    """
    if share == 0 or best_share == 0:
        return share > best_share or (share == best_share and used < best_used)
    high, low = _product(np.uint64(used), np.uint64(best_share))
    best_high, best_low = _product(np.uint64(best_used), np.uint64(share))
    return bool(high < best_high or (high == best_high and low < best_low))


@inlined
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Returns the high and the low 64 bits of a·b."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    low = a_low * b_low
    middle = a_high * b_low + (low >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half), (other << half) | (low & mask)


@kernel
def draw(state: np.ndarray[tuple[int], np.dtype[np.uint64]], below: int) -> int:
    """Draws a random whole number from 0 to below − 1, each equally likely (SplitMix64)."""
    bound = np.uint64(below)
    unfair = (np.uint64(0) - bound) % bound
    while True:
        state[0] += np.uint64(0x9E3779B97F4A7C15)
        mixed = state[0]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
        if mixed >= unfair:
            return int(mixed % bound)
