"""The choice of the waiting organization served next, where sums have two limbs (see `choice`).

Apart from the others, which are that much faster for being short.
"""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.choice import is_candidate
from shapleyprio.replay.kernel.codes import RELATIVE, UTILITY_SHARE
from shapleyprio.replay.kernel.horizon import contribution_wide, utility_wide
from shapleyprio.replay.kernel.keys import Keys
from shapleyprio.replay.kernel.state import Coalitions, Record
from shapleyprio.replay.kernel.wide import (
    minus,
    plus,
    precedes_wide,
    released_wide,
    rounded,
    times,
)


@kernel
def least_key_wide(state: Coalitions, keys: Keys, c: int, t: int) -> int:
    """Chooses as `choice.least_key` does."""
    best, best_high, best_low, best_rounded = -1, 0, 0, 0.0
    second = t - keys.begin[0]
    factor, lattice = keys.factor[c], keys.lattice[0] != 0
    for u in range(state.utility.shape[1]):
        if is_candidate(state, c, t, u):
            row = c ^ (1 << u) if lattice else u
            utility_high, utility_low = utility_wide(state, c, u, t)
            high, low = times(utility_high, utility_low, factor)
            high, low = plus(high, low, keys.high[row, second], keys.rows[row, second])
            near = keys.base[row] + keys.slope[row] * second
            near += float(factor) * rounded(utility_high, utility_low)
            if best < 0 or precedes_wide(high, low, near, best_high, best_low, best_rounded):
                best, best_high, best_low, best_rounded = u, high, low, near
    return best


@inlined
def _disadvantage(
    policy: int, state: Coalitions, record: Record, c: int, t: int, u: int
) -> tuple[int, int]:
    """Returns both limbs of ψ less what counts against it; under UtFairShare nothing does."""
    high, low = utility_wide(state, c, u, t)
    if policy != UTILITY_SHARE:
        more_high, more_low = contribution_wide(state, record, u, t)
        high, low = minus(high, low, more_high, more_low)
    if policy == RELATIVE:
        more_high, more_low = released_wide(record.released[0, u], t)
        high, low = plus(high, low, more_high, more_low)
        more_high, more_low = released_wide(record.released[1, u], t)
        high, low = minus(high, low, more_high, more_low)
    return high, low


@kernel
def most_disadvantaged(policy: int, state: Coalitions, record: Record, c: int, t: int) -> int:
    """Returns the candidate that comes before all others by a policy that compares utilities."""
    best, best_high, best_low, best_share = -1, 0, 0, 1
    for u in range(state.utility.shape[1]):
        if not is_candidate(state, c, t, u):
            continue
        high, low = _disadvantage(policy, state, record, c, t, u)
        share = record.owned[u] if policy == UTILITY_SHARE else 1
        if best < 0 or _is_more_late(high, low, share, best_high, best_low, best_share):
            best, best_high, best_low, best_share = u, high, low, share
    return best


@inlined
def _is_more_late(
    high: int, low: int, share: int, best_high: int, best_low: int, best_share: int
) -> bool:
    """Compares as `worth.less_by_share` does."""
    if share != best_share and (share == 0 or best_share == 0):
        return share > best_share
    if share != 0:
        near, best_near = rounded(high, low) * best_share, rounded(best_high, best_low) * share
        high, low = times(high, low, best_share)
        best_high, best_low = times(best_high, best_low, share)
    else:
        near, best_near = rounded(high, low), rounded(best_high, best_low)
    return precedes_wide(high, low, near, best_high, best_low, best_near)
