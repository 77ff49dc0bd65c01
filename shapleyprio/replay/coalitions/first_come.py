"""Values of coalitions whose jobs start first come, first served: one pass over the jobs each.

As long as nothing starts or ends, a value is a quadratic polynomial in time. So a pass gives three
numbers: the value at the game's end, its rate and its acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from shapleyprio.replay.coalitions.game import Bools, Game
from shapleyprio.replay.coalitions.growth import still_true
from shapleyprio.replay.coalitions.passes import (
    FIXED,
    OPEN_WIDTH,
    Arrays,
    advance,
    arrays_of,
    entries_at_most,
    room_for,
)
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.values import whole_numbers

PER_CALL = 16
"""Coalitions valued by one call, so that cores share the work evenly and Ctrl-C is heard."""

MOST_BYTES = 2**28
"""Remembered states take no more, for each of the two moments at which coalitions are valued."""

NOTHING = np.zeros(0, dtype=np.int64)


def values_of(game: Game, coalitions: Bools, *, cores: int = 1) -> Ints:
    """Returns the exact v(C) of coalitions at the game's end, and how it goes on.

    Args:
        game: jobs and processors.
        coalitions: bool[c, k], the members of each.
        cores: to compute on; the values do not depend on it.

    Returns:
        int64[c, 3], or Python's integers (objects) if the game is wide: the value in part-seconds,
        the completed parts that gain worth, and the processors at work (with a horizon, less those
        whose parts reach it); d seconds later the value is
        value + d·parts + d(d+1)/2·processors if nothing starts or ends.
    """
    return Valuation(cores=cores).values(game, coalitions)


class Valuation:
    """Values coalitions of a game that grows, and passes over what is certain once.

    The values are those of `values_of`, whatever was valued before.

    Args:
        cores: to compute on.
    """

    def __init__(self, *, cores: int = 1) -> None:
        self._cores = cores
        self._game: Game | None = None
        self._arrays: Arrays | None = None
        self._at_end = _States()
        self._at_horizon = _States()

    def values(self, game: Game, coalitions: Bools) -> Ints:
        """Returns what `values_of` does."""
        saturated = None if game.horizon is None else game.until - game.horizon
        if saturated is not None and saturated < int(game.since[0]):
            saturated = None
        arrays = self._entered(game, saturated)
        worthless: Ints | int = 0
        if saturated is not None:
            worthless = self._at_horizon.values(
                arrays, coalitions, saturated, self._cores, wide=game.is_wide
            )
            self._at_end.learn(self._at_horizon)
        # parts older than the horizon are worth min(age, horizon) = age − (age − horizon)
        values = self._at_end.values(arrays, coalitions, game.until, self._cores, wide=game.is_wide)
        return values - worthless

    def _entered(self, game: Game, saturated: int | None) -> Arrays:
        """Forgets what does not hold in a game, if it is another one than before."""
        if self._arrays is not None and self._game is game:
            return self._arrays
        arrays = arrays_of(game)
        if self._arrays is not None and self._game is not None:
            begin = int(game.since[0])
            self._at_end.enter(self._arrays, arrays, game.until)
            self._at_horizon.enter(self._arrays, arrays, begin if saturated is None else saturated)
        self._game, self._arrays = game, arrays
        return arrays


class _States:
    """States of coalitions' passes up to a moment."""

    def __init__(self) -> None:
        self._states: dict[bytes, Ints] = {}
        self._bytes = 0

    def enter(self, old: Arrays, new: Arrays, time: int) -> None:
        """Keeps what holds in a later game."""
        self._states = still_true(self._states, old, new, time)
        self._bytes = sum(state.nbytes for state in self._states.values())

    def learn(self, other: _States) -> None:
        """Takes states of an earlier moment where it has none."""
        for key, state in other._states.items():
            if key not in self._states:
                self._remember(key, state)

    def values(
        self, arrays: Arrays, coalitions: Bools, time: int, cores: int, *, wide: bool
    ) -> Ints:
        """Returns value, parts and processors of coalitions at a time, without a horizon."""
        values = np.zeros((len(coalitions), 3 + wide), dtype=np.int64)
        keys = [members.tobytes() for members in coalitions]

        def run(first: int) -> list[Ints]:
            part = slice(first, first + PER_CALL)
            before = [self._states.get(key, NOTHING) for key in keys[part]]
            return _advanced(arrays, coalitions[part], time, before, values[part])

        starts = range(0, len(coalitions), PER_CALL)
        if cores == 1:
            found = [state for first in starts for state in run(first)]
        else:
            with ThreadPoolExecutor(cores) as pool:
                found = [state for part in pool.map(run, starts) for state in part]
        for key, state in zip(keys, found, strict=True):
            self._remember(key, state)
        if wide:
            whole: Ints = whole_numbers(values[:, 3], values[:, 0])
            return np.column_stack((whole, values[:, 1:3]))
        return values

    def _remember(self, key: bytes, state: Ints) -> None:
        size = self._bytes + state.nbytes - self._states.get(key, NOTHING).nbytes
        if size <= MOST_BYTES:
            self._states[key] = state
            self._bytes = size


def _advanced(
    arrays: Arrays, coalitions: Bools, time: int, before: Sequence[Ints], values: Ints
) -> list[Ints]:
    """Writes values of coalitions, and returns the states that their passes came to."""
    count, k = coalitions.shape
    before_at = np.concatenate(([0], np.cumsum([len(state) for state in before])))
    # memory that is not written to is not taken from the machine
    after = np.empty(count * (FIXED + k + OPEN_WIDTH * entries_at_most(arrays)), dtype=np.int64)
    after_at = np.empty(count + 1, dtype=np.int64)
    advance(
        arrays,
        coalitions,
        time,
        np.concatenate(before),
        before_at,
        room_for(arrays),
        after,
        after_at,
        values,
    )
    return [after[after_at[c] : after_at[c + 1]].copy() for c in range(count)]
