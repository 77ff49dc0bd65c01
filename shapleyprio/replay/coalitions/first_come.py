"""Values of coalitions whose jobs start first come, first served: one pass over the jobs each.

As long as nothing starts or ends, a value is a quadratic polynomial in time. So a pass gives three
numbers: the value at the game's end, its rate and its acceleration.

A pass comes to a moment after which it needs a processing time that is only a guess. What it found
until then is its state there, and a later pass, which knows more, goes on from it. A state is one
row of whole numbers: those named below, how many jobs of each organization are in it, the heap
of running jobs (end and processors in one number), and the open ones (organization, number among
its jobs, start, processors), of which it is unknown when they end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from shapleyprio.replay.coalitions.game import Bools, Game
from shapleyprio.replay.engine.engine import whole_numbers
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.native import native

NOW, LEFT, CHANGE, FREE, RUNNING, OPEN, PARTS, MOMENT, HIGH, FIXED = range(10)
"""Places in a state: the moment it has come to, processors that its last job still waits for,
changes of processors seen, free processors, entries of the heap, entries of the open jobs, parts of
all jobs that started and are not open, and the sum of the seconds since the begin at which those
are executed, in two limbs. Numbers of fixed size end before `FIXED`."""

OPEN_WIDTH = 4

BELOW = 4
"""A heap has so many places more than entries, and `NEVER` in all that are empty."""


class Arrays(NamedTuple):
    """A game for functions in C; the names are those of `Game`.

    Attributes:
        queued: int64[jobs], each organization's jobs in their order, one organization after the
            other.
        first: int64[k + 1], where those of each organization begin in `queued`.
    """

    organization: Ints
    release: Ints
    processing_time: Ints
    processors: Ints
    certain: Ints
    since: Ints
    owned: Ints
    queued: Ints
    first: Ints


class Room(NamedTuple):
    """Where one pass works; it is overwritten by the next.

    Attributes:
        taken: int64[k], jobs of each organization that were looked at.
        heap, later: int64[n], running jobs until the guesses begin, and after that; both are left
            empty.
        open: int64[n, 4], jobs that run for an unknown time.
    """

    taken: Ints
    heap: Ints
    later: Ints
    open: Ints


def arrays_of(game: Game) -> Arrays:
    """Arranges a game for `advance`."""
    certain = game.processing_time if game.certain is None else game.certain
    count = np.bincount(game.organization, minlength=game.organizations)
    return Arrays(
        organization=_contiguous(game.organization),
        release=_contiguous(game.release),
        processing_time=_contiguous(game.processing_time),
        processors=_contiguous(game.processors),
        certain=_contiguous(certain),
        since=_contiguous(game.since),
        owned=_contiguous(game.owned),
        queued=np.argsort(game.organization.astype(np.int16), kind="stable"),
        first=np.concatenate(([0], np.cumsum(count))),
    )


def _contiguous(array: Ints) -> Ints:
    return np.ascontiguousarray(array, dtype=np.int64)


def room_for(arrays: Arrays) -> Room:
    """Returns room for the passes of one core."""
    k, entries = arrays.owned.shape[1], entries_at_most(arrays)
    return Room(
        taken=np.empty(k, dtype=np.int64),
        heap=np.full(entries + BELOW, NEVER),
        later=np.full(entries + BELOW, NEVER),
        open=np.empty((entries, OPEN_WIDTH), dtype=np.int64),
    )


def entries_at_most(arrays: Arrays) -> int:
    """Returns how many entries running and open jobs never exceed, and one."""
    return int(min(arrays.owned.sum(axis=1).max(), arrays.processors.sum())) + 1


@native("passes_advance")
def advance(
    arrays: Arrays,
    coalitions: Bools,
    time: int,
    before: Ints,
    before_at: Ints,
    room: Room,
    after: Ints,
    after_at: Ints,
    values: Ints,
) -> None:
    """Values coalitions at a time, and brings their states as far as nothing is guessed.

    Args:
        arrays: the game.
        coalitions: bool[c, k], the members of each.
        time: the second at which they are valued.
        before: states to go on from, one behind the other.
        before_at: int64[c + 1], where each begins and ends; one of no length is that of a
            coalition of which nothing is known.
        room: to work in.
        after: the states that were reached, one behind the other.
        after_at: int64[c + 1], where each begins and ends.
        values: int64[c, 3 or 4], value, parts and processors as in `first_come.values_of`, without
            a horizon, and the value's high limb if it has two.
    """


def still_true(
    states: Mapping[bytes, Ints], old: Arrays, new: Arrays, time: int
) -> dict[bytes, Ints]:
    """Returns those states of coalitions that a pass over a later game reaches as well.

    Args:
        states: members of a coalition as bytes of bool[k] -> its state as in `ways`.
        old: the game in which they were reached.
        new: the later one.
        time: nothing after that is asked of the later game.
    """
    k = new.owned.shape[1]
    changes = _common_changes(old, new) if old.owned.shape[1] == k else 0
    if not states or changes == 0:
        return {}
    common, seen = np.zeros((2, k), dtype=np.int64)
    _common_jobs(old, new, common, seen)
    heads = np.array([state[: FIXED + k] for state in states.values()])
    members = np.frombuffer(b"".join(states), dtype=np.bool_).reshape(-1, k)
    now, change, taken = heads[:, NOW], heads[:, CHANGE], heads[:, FIXED:]
    holds = (now <= time) & (change <= changes) & (taken <= common).all(axis=1)
    holds &= np.append(new.since, NEVER)[change] > now
    holds &= _in_order(new, members, np.minimum(taken, np.diff(new.first)))
    return {key: state for (key, state), good in zip(states.items(), holds, strict=True) if good}


def _common_changes(old: Arrays, new: Arrays) -> int:
    """Counts the changes of processors with which both games begin."""
    count = min(len(old.since), len(new.since))
    same = old.since[:count] == new.since[:count]
    same &= (old.owned[:count] == new.owned[:count]).all(axis=1)
    return count if same.all() else int(same.argmin())


def _in_order(new: Arrays, members: Bools, taken: Ints) -> Bools:
    """Says whether no other job of the members comes before those that were taken: bool[c]."""
    queued = np.append(new.queued, NEVER)
    first, end = new.first[:-1], new.first[1:]
    last = np.where(taken > 0, queued[first + taken - 1], -1).max(axis=1, initial=-1)
    following = np.where(members & (taken < end - first), queued[first + taken], NEVER)
    in_order: Bools = following.min(axis=1, initial=NEVER) > last
    return in_order


@native("growth_common_jobs")
def _common_jobs(old: Arrays, new: Arrays, common: Ints, seen: Ints) -> None:
    """Counts how many of each organization's first jobs are the same, in the same order of all.

    Args:
        old: a game.
        new: a later one.
        common: int64[k], the numbers, zeros at first.
        seen: int64[k], zeros to work with.
    """


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
