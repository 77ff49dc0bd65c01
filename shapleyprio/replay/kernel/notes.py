"""What coalitions do within a block of seconds, written down for their values."""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined
from shapleyprio.replay.kernel.horizon import has_horizon
from shapleyprio.replay.kernel.keys import Ints, Keys, Notes
from shapleyprio.replay.kernel.state import NEVER, Coalitions
from shapleyprio.replay.kernel.wide import is_wide, minus
from shapleyprio.replay.kernel.worth import add


@inlined
def begin_block(keys: Keys, second: int) -> None:
    """Goes on to another block, of which there are no keys yet."""
    keys.begin[:] = 0
    keys.begin[0] = second
    keys.notes.block[:] = -1  # a block may begin twice
    keys.notes.end[0] = 0


@inlined
def open_list(state: Coalitions, keys: Keys, c: int) -> None:
    """Sees to it that coalition c has a list for the block of the keys, if lists are kept of it."""
    notes = keys.notes
    if c < len(notes.block) and notes.block[c] != keys.begin[0]:
        place = notes.end[0]
        notes.block[c], notes.first[c] = keys.begin[0], place
        _write(state, notes, place, c, keys.begin[0])


@inlined
def lacks_room(keys: Keys, c: int) -> bool:
    """Returns whether there is no room for a list of coalition c of all it may do in a block."""
    notes = keys.notes
    return c < len(notes.block) and notes.end[0] + keys.rows.shape[1] + 2 > len(notes.entries)


@inlined
def count(state: Coalitions, keys: Keys, c: int, total: Ints, t: int, processors: int) -> None:
    """Adds processors to moments of all jobs of coalition c, or of older ones, and notes it.

    Its list must be the last one, if it has one.
    """
    open_list(state, keys, c)
    add(total, t, processors)
    notes = keys.notes
    if c < len(notes.block):
        place = notes.end[0] - 2
        if place == notes.first[c] or notes.entries[place, 0] != t:
            place += 1
        _write(state, notes, place, c, t)


@inlined
def _write(state: Coalitions, notes: Notes, place: int, c: int, t: int) -> None:
    entries, total = notes.entries, state.total[c]
    entries[place, 0] = t
    entries[place, 1], entries[place, 2], entries[place, 3] = total[0], total[1], total[2]
    if is_wide(state):
        entries[place, 4] = total[3]
    if has_horizon(state):
        older = state.past.total[c]
        entries[place, 1] -= older[0]
        entries[place, 2] -= older[1]
        if is_wide(state):
            entries[place, 4], entries[place, 3] = minus(total[3], total[2], older[3], older[2])
        else:
            entries[place, 3] -= older[2]
    entries[place + 1, 0] = NEVER
    notes.end[0] = place + 2
