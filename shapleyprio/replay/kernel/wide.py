"""Whole numbers of 128 bits as two limbs, for windows in which 64 bits are too few.

Both limbs are int64. The number is high·2^64 plus the low limb read as unsigned, modulo 2^128 in
two's complement. `limits` chooses before a run whether its sums have one limb or two; then they
have room for the second one, and that is how kernels know (`is_wide`).
"""

from __future__ import annotations

import numpy as np

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.keys import Ints
from shapleyprio.replay.kernel.state import Coalitions

SIGN = -(2**63)
HALF = 32
MASK = 2**32 - 1
LIMB = 2.0**64

FAR_APART = 2.0**126
"""Rounded values that differ by more are compared by them, nearer ones by 128 bits."""


@inlined
def is_wide(state: Coalitions) -> bool:
    """Returns whether the sums of these schedules have two limbs."""
    return bool(state.total.shape[1] == 4)


@inlined
def plus(high: int, low: int, other_high: int, other_low: int) -> tuple[int, int]:
    """Returns the sum of two numbers."""
    total = low + other_low
    return high + other_high + int((total ^ SIGN) < (low ^ SIGN)), total


@inlined
def minus(high: int, low: int, other_high: int, other_low: int) -> tuple[int, int]:
    """Returns the difference of two numbers."""
    return high - other_high - int((low ^ SIGN) < (other_low ^ SIGN)), low - other_low


@inlined
def difference(a: int, b: int) -> int:
    """Returns a − b modulo 2^64, for its sign to be looked at.

    Signed numbers will not do: numba says of them that they never exceed 64 bits, and LLVM makes of
    a − b < 0 what it need not be then, a < b.
    """
    return int(np.int64(np.uint64(a) - np.uint64(b)))


@inlined
def product(a: int, b: int) -> tuple[int, int]:
    """Returns the exact product of two numbers of 64 bits."""
    a_high, a_low, b_high, b_low = a >> HALF, a & MASK, b >> HALF, b & MASK
    middle = a_high * b_low + (((a_low * b_low) >> HALF) & MASK)
    other = a_low * b_high + (middle & MASK)
    return a_high * b_high + (middle >> HALF) + (other >> HALF), a * b


@inlined
def times(high: int, low: int, factor: int) -> tuple[int, int]:
    """Returns a number times one of 64 bits."""
    of_low, rest = product(low, factor)
    return high * factor + of_low + (factor if low < 0 else 0), rest


@inlined
def rounded(high: int, low: int) -> float:
    """Returns the number as a float; it must lie between −2^127 and 2^127."""
    return float(high) * LIMB + (float(low) + (LIMB if low < 0 else 0.0))


@inlined
def _triangular(n: int) -> tuple[int, int]:
    """Returns n(n+1)/2."""
    return product(n >> 1, n + 1) if n & 1 == 0 else product(n, (n + 1) >> 1)


@kernel
def add_wide(moments: Ints, second: int, processors: int) -> None:
    """Adds as `worth.add` does, for moments that have two limbs for the last one."""
    high, low = _triangular(second - 1)
    high, low = times(high, low, processors)
    moments[0] += processors
    moments[1] += processors * second
    moments[3], moments[2] = plus(moments[3], moments[2], high, low)


@kernel
def worth_wide(moments: Ints, t: int) -> tuple[int, int]:
    """Returns both limbs of the worth at t of all parts, in part-seconds (SPAA 2013, Eq. 3)."""
    high, low = _triangular(t)
    high, low = times(high, low, moments[0])
    more_high, more_low = product(moments[1], t)
    high, low = minus(high, low, more_high, more_low)
    return plus(high, low, moments[3], moments[2])


@kernel
def add_released_wide(moments: Ints, second: int, weight: int) -> None:
    """Adds work whose parts are worth so much more from a second on (ψ′ of CloudShare)."""
    high, low = product(weight, second)
    moments[0] += weight
    moments[2], moments[1] = plus(moments[2], moments[1], high, low)


@kernel
def released_wide(moments: Ints, t: int) -> tuple[int, int]:
    """Returns what parts are worth more at t because of their jobs' releases."""
    high, low = product(moments[0], t)
    return minus(high, low, moments[2], moments[1])


@inlined
def precedes_wide(
    high: int, low: int, near: float, best_high: int, best_low: int, best_near: float
) -> bool:
    """Returns whether a value known modulo 2^128 and roughly is less than another such value.

    Holds as long as the rounded difference is wrong by less than 2^126.
    """
    borrow = int((low ^ SIGN) < (best_low ^ SIGN))
    apart = difference(difference(high, best_high), borrow)
    return is_less(near - best_near, FAR_APART, apart)


@inlined
def is_less(apart: float, far: float, exactly: int) -> bool:
    """Returns whether a difference is negative: roughly, if so far apart, else exactly."""
    if apart > far:
        return False
    if apart < -far:
        return True
    return exactly < 0
