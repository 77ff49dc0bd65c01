"""The choice of the waiting organization served next: one short function for each policy.

Each returns whether organization u comes before organization w, both of them waiting, at moment t
in coalition c. Ties are nobody's: the one listed first is asked first and stays.
"""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.codes import (
    CURRENT_SHARE,
    DIRECT,
    FAIR_SHARE,
    FIRST_COME,
    KEYED,
    RANKED,
    RELATIVE,
    ROUND_ROBIN,
    SURFACE,
    UTILITY_SHARE,
)
from shapleyprio.replay.kernel.horizon import utility_at
from shapleyprio.replay.kernel.keys import Keys
from shapleyprio.replay.kernel.state import Coalitions, Jobs, Record, World
from shapleyprio.replay.kernel.worth import less_by_share, parts, precedes, worth

BY_KEYS = (KEYED, RANKED)
"""Policies that need keys; the others look at the schedule itself."""

BY_UTILITIES = (DIRECT, RELATIVE, UTILITY_SHARE)
"""Policies that compare utilities; by a horizon or where these need two limbs in `wide_choice`."""

BY_COPY = (CURRENT_SHARE, ROUND_ROBIN)
"""Policies by which the start of each copy changes the order within its moment."""

FICKLE = (*BY_COPY, FIRST_COME)
"""Policies by which that of a whole job does; else the organization stays first."""


@inlined
def direct(state: Coalitions, record: Record, c: int, t: int, u: int) -> int:
    """Returns DirectContr's balance (SPAA 2013, Fig. 9): φ̃ of u's processors less u's own ψ."""
    return worth(record.contribution[u], t) - worth(state.utility[c, u], t)


@inlined
def relative(state: Coalitions, record: Record, c: int, t: int, u: int) -> int:
    """Returns the balance by CloudShare's ψ′ (Eq. 3): a part is worth its job's release more."""
    own = record.released[0, u, 0] * t - record.released[0, u, 1]
    more: int = record.released[1, u, 0] * t - record.released[1, u, 1] - own
    return direct(state, record, c, t, u) + more


@inlined
def surface(state: Coalitions, record: Record, c: int, t: int, u: int) -> int:
    """Returns the balance by CloudShare's ψ″ (Eq. 4): parts count, not when they were executed."""
    return parts(record.contribution[u], t) - parts(state.utility[c, u], t)


@inlined
def fair_share(state: Coalitions, record: Record, c: int, t: int, u: int, w: int) -> bool:
    """Compares for FairShare: the least processor time for its share of the processors."""
    return less_by_share(
        parts(state.utility[c, u], t),
        record.owned[u],
        parts(state.utility[c, w], t),
        record.owned[w],
    )


@inlined
def utility_share(state: Coalitions, record: Record, c: int, t: int, u: int, w: int) -> bool:
    """Compares for UtFairShare: the least utility ψ for its share of the processors."""
    return less_by_share(
        worth(state.utility[c, u], t),
        record.owned[u],
        worth(state.utility[c, w], t),
        record.owned[w],
    )


@inlined
def current_share(state: Coalitions, record: Record, c: int, u: int, w: int) -> bool:
    """Compares for CurrFairShare: the fewest processors at work for it, for its share of them."""
    return less_by_share(
        state.utility[c, u, 0], record.owned[u], state.utility[c, w, 0], record.owned[w]
    )


@inlined
def round_robin(state: Coalitions, c: int, u: int, w: int) -> bool:
    """Compares for RoundRobin: whoever comes first behind the one that was served last."""
    k = state.utility.shape[1]
    behind = state.served[c] + 1
    return bool((u - behind) % k < (w - behind) % k)


@inlined
def first_come(jobs: Jobs, state: Coalitions, c: int, u: int, w: int) -> bool:
    """Compares for FCFS: the earliest release, then the order of the log."""
    mine, other = state.head[c, u], state.head[c, w]
    if jobs.release[mine] != jobs.release[other]:
        return bool(jobs.release[mine] < jobs.release[other])
    return bool(jobs.position[mine] < jobs.position[other])


@inlined
def comes_before(policy: int, world: World, c: int, t: int, u: int, w: int) -> bool:
    """Returns whether u is served before w by that policy."""
    state, record = world.state, world.record
    if policy == FIRST_COME:  # by far the most frequent, in Rand's coalitions
        return first_come(world.jobs, state, c, u, w)
    if policy == DIRECT:
        return direct(state, record, c, t, u) > direct(state, record, c, t, w)
    if policy == RELATIVE:
        return relative(state, record, c, t, u) > relative(state, record, c, t, w)
    if policy == SURFACE:
        return surface(state, record, c, t, u) > surface(state, record, c, t, w)
    if policy == FAIR_SHARE:
        return fair_share(state, record, c, t, u, w)
    if policy == UTILITY_SHARE:
        return utility_share(state, record, c, t, u, w)
    if policy == CURRENT_SHARE:
        return current_share(state, record, c, u, w)
    return round_robin(state, c, u, w)


@inlined
def is_candidate(state: Coalitions, c: int, t: int, u: int) -> bool:
    """Returns whether a job of u waits that was not passed over at this moment."""
    return bool(state.demand_of[c, u] != 0 and state.passed[c, u] != t)


@inlined
def least_key(state: Coalitions, keys: Keys, c: int, t: int) -> int:
    """Chooses for Ref and Rand the largest φ − ψ, which has the least of all keys (`lattice`)."""
    best, best_exact, best_rounded = -1, 0, 0.0
    second = t - keys.begin[0]
    factor, lattice = keys.factor[c], keys.lattice[0] != 0
    inverse, shrink = keys.inverse[c], keys.shrink[c]
    for u in range(state.utility.shape[1]):
        if is_candidate(state, c, t, u):
            row = c ^ (1 << u) if lattice else u
            utility = utility_at(state, c, u, t)
            exact = (keys.rows[row, second] + factor * utility) * inverse
            rounded = keys.base[row] + keys.slope[row] * second + float(factor) * float(utility)
            rounded *= shrink
            if best < 0 or precedes(exact, rounded, best_exact, best_rounded):
                best, best_exact, best_rounded = u, exact, rounded
    return best


@kernel
def first_of_all(policy: int, world: World, c: int, t: int) -> int:
    """Returns the candidate that comes before all others."""
    best = -1
    for u in range(world.state.utility.shape[1]):
        if is_candidate(world.state, c, t, u) and (
            best < 0 or comes_before(policy, world, c, t, u, best)
        ):
            best = u
    return best
