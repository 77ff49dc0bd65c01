"""The values of coalitions over a block of seconds."""

from __future__ import annotations

from shapleyprio.replay.compiled import inlined, kernel
from shapleyprio.replay.kernel.state import Coalitions, Ints, Keys
from shapleyprio.replay.kernel.worth import parts, worth


@inlined
def add_value(state: Coalitions, keys: Keys, c: int, factor: int, row: int) -> None:
    """Adds factor·v(c, t) to a row of keys, for all t of the block.

    From one second to the next v grows by the parts completed by then, and those by the
    processors that were busy in between.
    """
    begin = keys.begin[0]
    changed = keys.changed[c] == begin
    if changed:
        value, done, busy = keys.opening[c, 0], keys.opening[c, 1], keys.opening[c, 2]
    else:
        value, done = worth(state.total[c], begin), parts(state.total[c], begin)
        busy = state.total[c, 0]
    keys.base[row] += float(factor) * float(value)
    keys.slope[row] += float(factor) * float(done)
    value, done, busy = factor * value, factor * done, factor * busy
    target = keys.rows[row]
    if changed:
        changes = keys.changes[c]
        for second in range(len(target)):
            target[second] += value
            busy += factor * changes[second]
            done += busy
            value += done
    else:
        for second in range(len(target)):
            target[second] += value + second * done + busy * ((second * (second + 1)) >> 1)


@inlined
def clear_row(keys: Keys, row: int) -> None:
    """Empties a row of keys."""
    keys.rows[row, :] = 0
    keys.base[row] = 0.0
    keys.slope[row] = 0.0


@kernel
def value_at(state: Coalitions, t: int, values: Ints) -> None:
    """Computes v(c, t) of all coalitions, for a t at or after everything that happened."""
    for c in range(len(values)):
        values[c] = worth(state.total[c], t)
