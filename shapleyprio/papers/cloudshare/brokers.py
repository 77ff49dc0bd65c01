"""Brokers that share processors: CloudShare's simulation (section 5.1) of one coalition, compiled.

All units of work last one hour. At each moment, in this order: units that end free their
processors; jobs released now arrive; an organization's background units start on its own free
processors; then units of the federation start while one waits and a processor is free. What
starts now is worth nothing yet, and parts of running units count, as everywhere in this project.

Whose processor a unit gets: if nothing waited before and all that arrives fits, its own
organization's while that has a free one, as a broker runs a task locally if it can (section 3.3,
event 1). Else a free processor is drawn, each as likely as any other (section 3.2.3), and the
algorithm picks the organization it serves.

As all units are equally long and processors are given without a look at whom they serve, how many
units start when on whose processors does not depend on the algorithm. Hence every algorithm has
the same total wait in the same coalition, which the paper asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shapleyprio.errors import ReplayError
from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.worth import add, draw, less_by_share, parts, worth
from shapleyprio.wording import SECONDS_OF_AN_HOUR

HOUR = SECONDS_OF_AN_HOUR
"""Seconds that every unit lasts."""

NEVER = 2**62

ORIGINAL, RELATIVE, SIMPLIFIED, FAIR_SHARE, ROUND_ROBIN = range(5)

ALGORITHMS: Mapping[str, int] = {
    "orig-direct": ORIGINAL,
    "rel-direct": RELATIVE,
    "simpl-direct": SIMPLIFIED,
    "fairshare": FAIR_SHARE,
    "roundrobin": ROUND_ROBIN,
}
"""The algorithms of section 5.2 by their names in `shapleyprio.replay.POLICIES`.

They serve as there, but for roundrobin: section 5.2 wants whoever has never been served, else
whoever was served least recently, and the replay goes through its list in turn.
"""

Ints = NDArray[np.int64]


class Queues(NamedTuple):
    """Jobs by organization, then in the order in which they start; u has first[u] to first[u + 1].

    Attributes:
        first: int64[organizations + 1].
        release: int64[jobs], seconds, rising within an organization.
        units: int64[jobs], above 0.
    """

    first: Ints
    release: Ints
    units: Ints


class Brokers(NamedTuple):
    """State of a coalition of k organizations; others own nothing, and nothing of theirs arrives.

    Attributes:
        owned, free: [k], processors.
        arriving, background_arriving: [k], the next job of each that is not released yet.
        last, background_last: [k], the job behind the last one of each.
        head, left: [k], the first job that waits, and how many of its units do.
        waiting, background: [k], units that wait, and units of background load that do.
        utility, contribution: [k, 3], moments of units on processors, of each one's jobs and on
            each one's processors; see `shapleyprio.fairness.utility`.
        released: [2, k, 2], the same weighted by release, for ψ′: of jobs, and on processors.
        served: [k], the turn in which each was served last; −1 for never.
        end, owner, organization, release: [m], the running units in the order of their ends, in a
            ring; organization is −1 for background load.
        ring: [2], where its first one stands, and how many there are.
        waits: [k], seconds that the units started so far have waited.
        random: [1], state of the generator.
    """

    owned: Ints
    free: Ints
    arriving: Ints
    last: Ints
    background_arriving: Ints
    background_last: Ints
    head: Ints
    left: Ints
    waiting: Ints
    background: Ints
    utility: Ints
    contribution: Ints
    released: Ints
    served: Ints
    end: Ints
    owner: Ints
    organization: Ints
    release: Ints
    ring: Ints
    waits: Ints
    random: NDArray[np.uint64]


def simulate_example() -> None:
    """Simulates two jobs under every algorithm, so that all functions get compiled."""
    jobs = Queues(*(np.array(column, dtype=np.int64) for column in ([0, 1, 2], [0, 0], [1, 1])))
    owned = np.ones(2, dtype=np.int64)
    for algorithm in ALGORITHMS:
        total_waits(algorithm, 3, owned, jobs, jobs)


def total_waits(
    algorithm: str,
    coalition: int,
    owned: Ints,
    federated: Queues,
    background: Queues,
    *,
    seed: int = 0,
) -> tuple[int, ...]:
    """Returns the seconds that each organization's units wait in all, from release to start.

    Args:
        algorithm: one of `ALGORITHMS`.
        coalition: its members as bits; the others neither lend nor ask.
        owned: int64[organizations], processors; above 0 for every member.
        federated: jobs that go to the brokers.
        background: jobs of local users, who know only their own organization's processors.
        seed: of the draws of processors.

    Raises:
        ReplayError: the numbers may not fit into 64 bits.
    """
    member = np.array([coalition >> u & 1 for u in range(len(owned))], dtype=np.int64)
    brokers = _brokers(member, owned * member, federated, background, seed)
    units = sum(_units(queues, member) for queues in (federated, background))
    _refuse_what_would_wrap(int(brokers.owned.sum()), units, federated)
    _run(ALGORITHMS[algorithm], brokers, federated, background, _units(federated, member))
    return tuple(brokers.waits.tolist())


def _units(queues: Queues, member: Ints) -> int:
    return int(queues.units[np.repeat(member, np.diff(queues.first)) == 1].sum())


def _refuse_what_would_wrap(processors: int, units: int, federated: Queues) -> None:
    """Raises if sums may wrap: all processors work while a unit waits, which bounds the end."""
    end = int(federated.release.max(initial=0)) + HOUR * (units // processors + 2)
    if max(2 * processors * end * (end + 1), units * end * HOUR) >= 2**62:
        raise ReplayError(
            f"{units} hours of work on {processors} processors: the utility may exceed 64 bits; "
            "take more processors"
        )


def _brokers(
    member: Ints, owned: Ints, federated: Queues, background: Queues, seed: int
) -> Brokers:
    k, m = len(owned), int(owned.sum())

    def none(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    def last(queues: Queues) -> Ints:
        return np.where(member == 1, queues.first[1:], queues.first[:-1])

    return Brokers(
        owned=owned,
        free=owned.copy(),
        arriving=federated.first[:-1].copy(),
        last=last(federated),
        background_arriving=background.first[:-1].copy(),
        background_last=last(background),
        head=federated.first[:-1].copy(),
        left=none(k),
        waiting=none(k),
        background=none(k),
        utility=none(k, 3),
        contribution=none(k, 3),
        released=none(2, k, 2),
        served=np.full(k, -1, dtype=np.int64),
        end=none(m),
        owner=none(m),
        organization=none(m),
        release=none(m),
        ring=none(2),
        waits=none(k),
        random=np.array([seed % 2**64], dtype=np.uint64),
    )


@kernel
def _run(
    algorithm: int, brokers: Brokers, federated: Queues, background: Queues, units: int
) -> None:
    """Goes from moment to moment until all units of the federation have started."""
    turn = 0
    while turn < units:
        t = _next_moment(brokers, federated, background)
        _finish(brokers, t)
        queued = brokers.waiting.sum()
        _arrive(brokers, federated, background, t)
        _start_background(brokers, t)
        waiting, free = brokers.waiting.sum(), brokers.free.sum()
        if queued == 0 and waiting <= free:
            turn = _start_at_home(brokers, federated, t, turn)
            waiting, free = brokers.waiting.sum(), brokers.free.sum()
        for drawn in range(min(waiting, free)):
            owner = _drawn_owner(brokers, free - drawn)
            u = _served_next(algorithm, brokers, t)
            _start(brokers, federated, u, owner, t, turn)
            turn += 1


@kernel
def _next_moment(brokers: Brokers, federated: Queues, background: Queues) -> int:
    t = NEVER
    if brokers.ring[1] > 0:
        t = brokers.end[brokers.ring[0]]
    for u in range(len(brokers.owned)):
        if brokers.arriving[u] < brokers.last[u]:
            t = min(t, federated.release[brokers.arriving[u]])
        if brokers.background_arriving[u] < brokers.background_last[u]:
            t = min(t, background.release[brokers.background_arriving[u]])
    return t


@kernel
def _finish(brokers: Brokers, t: int) -> None:
    """Ends what has run until t; units are equally long, so the first to start ends first."""
    ring = brokers.ring
    while ring[1] > 0 and brokers.end[ring[0]] <= t:
        first = ring[0]
        owner, u = brokers.owner[first], brokers.organization[first]
        brokers.free[owner] += 1
        if u >= 0:
            _write_down(brokers, u, owner, brokers.release[first], t, -1)
        ring[0] = (first + 1) % len(brokers.end)
        ring[1] -= 1


@kernel
def _arrive(brokers: Brokers, federated: Queues, background: Queues, t: int) -> None:
    for u in range(len(brokers.owned)):
        job = brokers.arriving[u]
        while job < brokers.last[u] and federated.release[job] <= t:
            if brokers.waiting[u] == 0:
                brokers.head[u], brokers.left[u] = job, federated.units[job]
            brokers.waiting[u] += federated.units[job]
            job += 1
        brokers.arriving[u] = job
        job = brokers.background_arriving[u]
        while job < brokers.background_last[u] and background.release[job] <= t:
            brokers.background[u] += background.units[job]
            job += 1
        brokers.background_arriving[u] = job


@kernel
def _start_background(brokers: Brokers, t: int) -> None:
    for u in range(len(brokers.owned)):
        for _ in range(min(brokers.background[u], brokers.free[u])):
            brokers.background[u] -= 1
            _occupy(brokers, u, -1, 0, t)


@kernel
def _start_at_home(brokers: Brokers, federated: Queues, t: int, turn: int) -> int:
    for u in range(len(brokers.owned)):
        for _ in range(min(brokers.waiting[u], brokers.free[u])):
            _start(brokers, federated, u, u, t, turn)
            turn += 1
    return turn


@kernel
def _drawn_owner(brokers: Brokers, free: int) -> int:
    left = draw(brokers.random, free)
    owner = 0
    while left >= brokers.free[owner]:
        left -= brokers.free[owner]
        owner += 1
    return owner


@kernel
def _start(brokers: Brokers, federated: Queues, u: int, owner: int, t: int, turn: int) -> None:
    """Starts the first waiting unit of an organization on a processor of that owner."""
    release = federated.release[brokers.head[u]]
    brokers.waits[u] += t - release
    brokers.served[u] = turn
    brokers.waiting[u] -= 1
    brokers.left[u] -= 1
    if brokers.left[u] == 0 and brokers.waiting[u] > 0:
        brokers.head[u] += 1
        brokers.left[u] = federated.units[brokers.head[u]]
    _write_down(brokers, u, owner, release, t, 1)
    _occupy(brokers, owner, u, release, t)


@kernel
def _occupy(brokers: Brokers, owner: int, organization: int, release: int, t: int) -> None:
    entry = (brokers.ring[0] + brokers.ring[1]) % len(brokers.end)
    brokers.ring[1] += 1
    brokers.free[owner] -= 1
    brokers.end[entry] = t + HOUR
    brokers.owner[entry] = owner
    brokers.organization[entry] = organization
    brokers.release[entry] = release


@inlined
def _write_down(
    brokers: Brokers, u: int, owner: int, release: int, t: int, processors: int
) -> None:
    """Records that processors start (or, negative, stop) working for u at t."""
    add(brokers.utility[u], t, processors)
    add(brokers.contribution[owner], t, processors)
    for moments in (brokers.released[0, u], brokers.released[1, owner]):
        moments[0] += processors * release
        moments[1] += processors * release * t


@kernel
def _served_next(algorithm: int, brokers: Brokers, t: int) -> int:
    """Returns whose unit starts; ties go to the organization listed first."""
    best = -1
    for u in range(len(brokers.owned)):
        if brokers.waiting[u] > 0 and (best < 0 or _comes_before(algorithm, brokers, t, u, best)):
            best = u
    return best


@inlined
def _comes_before(algorithm: int, brokers: Brokers, t: int, u: int, w: int) -> bool:
    if algorithm == ROUND_ROBIN:
        return bool(brokers.served[u] < brokers.served[w])
    if algorithm == FAIR_SHARE:
        return less_by_share(
            parts(brokers.utility[u], t),
            brokers.owned[u],
            parts(brokers.utility[w], t),
            brokers.owned[w],
        )
    return _priority(algorithm, brokers, t, u) > _priority(algorithm, brokers, t, w)


@inlined
def _priority(algorithm: int, brokers: Brokers, t: int, u: int) -> int:
    """Returns contribution less utility, measured by ψ (Eq. 2), ψ′ (Eq. 3) or ψ″ (Eq. 4)."""
    if algorithm == SIMPLIFIED:
        return parts(brokers.contribution[u], t) - parts(brokers.utility[u], t)
    balance = worth(brokers.contribution[u], t) - worth(brokers.utility[u], t)
    if algorithm == RELATIVE:
        # every part is worth its job's release more
        released = brokers.released
        lent = released[1, u, 0] * t - released[1, u, 1]
        balance += lent - (released[0, u, 0] * t - released[0, u, 1])
    return balance
