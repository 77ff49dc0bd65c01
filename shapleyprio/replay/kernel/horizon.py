"""Worth with a horizon: what is older than it is subtracted (see `state.PastEvents`).

Without a horizon nothing is noted, and worths are those of `worth` and `wide`.
"""

from __future__ import annotations

import numpy as np

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.keys import Ints
from shapleyprio.replay.kernel.running import OWNER_BITS
from shapleyprio.replay.kernel.state import NEVER, Coalitions, PastEvents, Record
from shapleyprio.replay.kernel.wide import minus, worth_wide
from shapleyprio.replay.kernel.worth import worth

WHOSE_BITS = OWNER_BITS + 1
WHOSE: int = 2**WHOSE_BITS - 1
"""Organization u itself is u, its processors are k + u."""


@inlined
def has_horizon(state: Coalitions) -> bool:
    """Returns whether parts stop gaining worth at some age."""
    return len(state.past.due) != 0


@inlined
def next_due(state: Coalitions, c: int) -> int:
    """Returns when something that coalition c did comes to be a horizon old."""
    return state.past.due[c] if has_horizon(state) else NEVER


@inlined
def _place(past: PastEvents, c: int, event: int) -> int:
    first = past.first[c]
    place: int = first + event % (past.first[c + 1] - first)
    return place


@inlined
def note_end(
    state: Coalitions, record: Record, c: int, t: int, u: int, owner: int, processors: int
) -> None:
    """Notes that processors of an owner stop working for u in coalition c."""
    if has_horizon(state):
        _note_end(state.past, c, t, u, record.coalition[0], owner + len(record.owned), processors)


@kernel
def _note_end(
    past: PastEvents, c: int, t: int, u: int, recorded: int, owner: int, processors: int
) -> None:
    _note(past, c, t, u, -processors)
    if recorded == c:
        _note(past, c, t, owner, -processors)


@inlined
def note_start(state: Coalitions, record: Record, c: int, t: int, u: int, processors: int) -> None:
    """Notes that processors start working for u in coalition c, as they were given last."""
    if has_horizon(state):
        _note_start(state.past, record.given, c, t, u, record.coalition[0], processors)


@kernel
def _note_start(
    past: PastEvents, given: Ints, c: int, t: int, u: int, recorded: int, processors: int
) -> None:
    _note(past, c, t, u, processors)
    if recorded == c:
        for owner in range(len(given)):
            if given[owner] != 0:
                _note(past, c, t, len(given) + owner, given[owner])


@kernel
def _note(past: PastEvents, c: int, t: int, whose: int, processors: int) -> None:
    events, event = past.events, past.newest[c] - 1
    while event >= past.oldest[c] and events[_place(past, c, event), 0] == t:
        place = _place(past, c, event)
        if events[place, 1] & WHOSE == whose:
            events[place, 1] += processors << WHOSE_BITS
            return
        event -= 1
    place = _place(past, c, past.newest[c])
    events[place, 0], events[place, 1] = t, (processors << WHOSE_BITS) | whose
    if past.newest[c] == past.oldest[c]:
        past.due[c] = t + past.horizon[0]
    past.newest[c] += 1


@inlined
def take_due(past: PastEvents, c: int) -> tuple[int, int]:
    """Takes away the oldest event of coalition c; returns whose it is, and its processors."""
    what = past.events[_place(past, c, past.oldest[c]), 1]
    past.oldest[c] += 1
    past.due[c] = NEVER
    if past.oldest[c] < past.newest[c]:
        past.due[c] = past.events[_place(past, c, past.oldest[c]), 0] + past.horizon[0]
    return what & WHOSE, what >> WHOSE_BITS


@kernel
def has_room(state: Coalitions, seconds: int) -> bool:
    """Returns whether there is room for all that may happen in so many seconds."""
    past, lacking = state.past, 0
    for c in range(len(past.due)):
        room = past.first[c + 1] - past.first[c]
        if room < past.within[c]:
            wanted = past.newest[c] - past.oldest[c] + past.in_a_second[c] * seconds
            lacking = max(lacking, wanted - room)
    return bool(lacking == 0)


def with_more_room(state: Coalitions, seconds: int) -> Coalitions:
    """Returns the same schedules with room for so many seconds, and for twice what is there."""
    past = state.past
    wanted = 2 * (past.newest - past.oldest) + past.in_a_second * seconds
    room = np.maximum(np.diff(past.first), np.minimum(wanted, past.within))
    first = np.concatenate(([0], np.cumsum(room)))
    events = np.empty((first[-1], 2), dtype=np.int64)
    for c, (oldest, newest) in enumerate(zip(past.oldest, past.newest, strict=True)):
        numbers = np.arange(oldest, newest)
        before = past.events[past.first[c] : past.first[c + 1]]
        events[first[c] + numbers % room[c]] = before[numbers % len(before)]
    return state._replace(past=past._replace(first=first, events=events))


@inlined
def utility_at(state: Coalitions, c: int, u: int, t: int) -> int:
    """Returns ψ of u's jobs in coalition c; one limb of it."""
    own: int = worth(state.utility[c, u], t)
    if has_horizon(state):
        own -= worth(state.past.utility[c, u], t)
    return own


@inlined
def value_at(state: Coalitions, c: int, t: int) -> int:
    """Returns the value of coalition c; one limb of it."""
    value: int = worth(state.total[c], t)
    if has_horizon(state):
        value -= worth(state.past.total[c], t)
    return value


@inlined
def utility_wide(state: Coalitions, c: int, u: int, t: int) -> tuple[int, int]:
    """Returns both limbs of ψ of u's jobs in coalition c."""
    high, low = worth_wide(state.utility[c, u], t)
    if has_horizon(state):
        less_high, less_low = worth_wide(state.past.utility[c, u], t)
        high, low = minus(high, low, less_high, less_low)
    return high, low


@inlined
def contribution_wide(state: Coalitions, record: Record, u: int, t: int) -> tuple[int, int]:
    """Returns both limbs of φ̃ of u's processors."""
    high, low = worth_wide(record.contribution[u], t)
    if has_horizon(state):
        less_high, less_low = worth_wide(state.past.contribution[u], t)
        high, low = minus(high, low, less_high, less_low)
    return high, low


@inlined
def value_wide(state: Coalitions, c: int, t: int) -> tuple[int, int]:
    """Returns both limbs of the value of coalition c."""
    high, low = worth_wide(state.total[c], t)
    if has_horizon(state):
        less_high, less_low = worth_wide(state.past.total[c], t)
        high, low = minus(high, low, less_high, less_low)
    return high, low
