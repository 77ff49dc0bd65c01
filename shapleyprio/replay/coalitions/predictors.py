"""Predictions of how long unfinished jobs will last, by their users' past and their limits."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from shapleyprio.replay.coalitions.game import Ints
from shapleyprio.replay.coalitions.options import PREDICTORS
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.workloads.log import UNKNOWN

DEFAULT_SECONDS = 3600
"""Expected of a job of which nothing is known."""


class Predictor(Protocol):
    """Predicts processing times. It learns of jobs in the order in which they ended."""

    @abstractmethod
    def learn(self, user: int, limit: int, processing_time: int) -> None:
        """Takes in a job that has ended; user and limit are UNKNOWN if they are unknown."""

    @abstractmethod
    def predict(self, user: Ints, limit: Ints, elapsed: Ints) -> Ints:
        """Predicts processing times in seconds, each longer than what has elapsed.

        Args:
            user: int64[n], code of each unfinished job's user, UNKNOWN where not known.
            limit: int64[n], requested processing time, UNKNOWN where not known.
            elapsed: int64[n], seconds each has run; 0 if it has not started.
        """


class LastTwo:
    """The mean of the user's last two jobs (Tsafrir, Etsion & Feitelson 2007)."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}

    def learn(self, user: int, limit: int, processing_time: int) -> None:  # noqa: ARG002
        """Takes in a job that has ended, see `Predictor`."""
        if user != UNKNOWN:
            before = self._last.get(user)
            self._last[user] = (before[1] if before else processing_time, processing_time)

    def predict(self, user: Ints, limit: Ints, elapsed: Ints) -> Ints:
        """Predicts processing times, see `Predictor`."""
        expected = [self.mean(u) for u in user.tolist()]
        return plausible(np.array(expected, dtype=np.int64), limit, elapsed)

    def mean(self, user: int) -> int:
        """Returns the mean of the user's last two; UNKNOWN without any."""
        last = self._last.get(user)
        return sum(last) // 2 if last else UNKNOWN


class Limit:
    """The time limit."""

    def learn(self, user: int, limit: int, processing_time: int) -> None:
        """Ignores ended jobs, see `Predictor`."""

    def predict(self, user: Ints, limit: Ints, elapsed: Ints) -> Ints:  # noqa: ARG002
        """Predicts processing times, see `Predictor`."""
        return plausible(limit, limit, elapsed)


class Survivors:
    """The mean of those of the user's past jobs that lasted longer than this one has so far."""

    def __init__(self, past: int = 1000) -> None:
        self._past = past
        self._durations: dict[int, list[int]] = {}
        self._order: dict[int, list[int]] = {}

    def learn(self, user: int, limit: int, processing_time: int) -> None:  # noqa: ARG002
        """Takes in a job that has ended, see `Predictor`."""
        if user == UNKNOWN:
            return
        durations = self._durations.setdefault(user, [])
        order = self._order.setdefault(user, [])
        insort(durations, processing_time)
        order.append(processing_time)
        if len(order) > self._past:
            oldest = order.pop(0)
            del durations[bisect_right(durations, oldest) - 1]

    def predict(self, user: Ints, limit: Ints, elapsed: Ints) -> Ints:
        """Predicts processing times, see `Predictor`."""
        expected = [
            self._expected(u, since)
            for u, since in zip(user.tolist(), elapsed.tolist(), strict=True)
        ]
        return plausible(np.array(expected, dtype=np.int64), limit, elapsed)

    def _expected(self, user: int, elapsed: int) -> int:
        if user not in self._durations:
            return UNKNOWN
        durations = self._durations[user]
        longer = durations[bisect_right(durations, elapsed) :]
        return sum(longer) // len(longer) if longer else 2 * elapsed


class Combined:
    """Survivors of the user's recent jobs if there are enough, else the last two, else the limit.

    Those with the same limit count, if enough of them survive, since users who do several things
    ask for other limits; else all. Recent, since users change what they do; enough, since the mean
    of one or two is chance.
    """

    def __init__(self, past: int = 20, enough: int = 3) -> None:
        self._past = past
        self._enough = enough
        self._durations: dict[tuple[int, ...], deque[int]] = {}
        self._last_two = LastTwo()

    def learn(self, user: int, limit: int, processing_time: int) -> None:
        """Takes in a job that has ended, see `Predictor`."""
        self._last_two.learn(user, limit, processing_time)
        if user != UNKNOWN:
            for alike in ((user, limit), (user,)):
                recent = self._durations.setdefault(alike, deque(maxlen=self._past))
                recent.append(processing_time)

    def predict(self, user: Ints, limit: Ints, elapsed: Ints) -> Ints:
        """Predicts processing times, see `Predictor`."""
        rows = list(zip(user.tolist(), limit.tolist(), elapsed.tolist(), strict=True))
        of_row = {row: self._expected(*row) for row in set(rows)}  # many wait alike
        expected = [of_row[row] for row in rows]
        return plausible(np.array(expected, dtype=np.int64), limit, elapsed)

    def _expected(self, user: int, limit: int, elapsed: int) -> int:
        longer: list[int] = []
        for alike in ((user, limit), (user,)):
            longer = [seconds for seconds in self._durations.get(alike, ()) if seconds > elapsed]
            if len(longer) >= self._enough:
                return sum(longer) // len(longer)
        last_two = self._last_two.mean(user)
        if last_two > elapsed:
            return last_two
        if limit > elapsed:
            return limit
        return sum(longer) // len(longer) if longer else UNKNOWN


def predictor_named(name: str) -> Predictor:
    """Returns a new predictor.

    Args:
        name: one of `PREDICTORS`.

    Raises:
        PolicyError: there is no such predictor.
    """
    if name not in _MAKERS:
        raise PolicyError(f"unknown predictor {name!r}; take one of {', '.join(PREDICTORS)}")
    return _MAKERS[name]()


_MAKERS: Mapping[str, Callable[[], Predictor]] = dict(
    zip(PREDICTORS, (Combined, Survivors, LastTwo, Limit), strict=True)
)


def plausible(expected: Ints, limit: Ints, elapsed: Ints) -> Ints:
    """Returns more than has elapsed; the limit, or an hour, where nothing is known."""
    fallback = np.where(limit == UNKNOWN, np.maximum(2 * elapsed, DEFAULT_SECONDS), limit)
    found = np.where(expected == UNKNOWN, fallback, expected)
    going_on = np.where(found <= elapsed, 2 * elapsed + 1, found)
    return np.where(elapsed < limit, np.minimum(going_on, limit), going_on)
