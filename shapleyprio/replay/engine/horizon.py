"""Room for what is younger than the horizon (see `state.PastEvents`)."""

from __future__ import annotations

import numpy as np

from shapleyprio.replay.engine.state import Coalitions


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
