"""Predictions of how long unfinished jobs will last, by their users' past and their limits."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.coalitions.game import Ints
from shapleyprio.replay.coalitions.options import PREDICTORS
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.workloads.log import UNKNOWN

Floats = NDArray[np.float64]

DEFAULT_SECONDS = 3600
"""Expected of a job of which nothing is known."""

OTHERS = 3
"""Survivors of anybody's jobs that count beside those of the user's when lengths are drawn."""

PAST_OF_ANYBODY = 100
"""Recent jobs of anybody from which lengths are drawn where a user has too few."""

_ANY_LIMIT = UNKNOWN - 1


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
        return _plausible(np.array(expected, dtype=np.int64), limit, elapsed)

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
        return _plausible(limit, limit, elapsed)


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
        return _plausible(np.array(expected, dtype=np.int64), limit, elapsed)

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
        self._anybody: dict[int, deque[int]] = {}
        self._last_two = LastTwo()

    def learn(self, user: int, limit: int, processing_time: int) -> None:
        """Takes in a job that has ended, see `Predictor`."""
        self._last_two.learn(user, limit, processing_time)
        for asked in (limit, _ANY_LIMIT):
            others = self._anybody.setdefault(asked, deque(maxlen=PAST_OF_ANYBODY))
            others.append(processing_time)
        if user != UNKNOWN:
            for alike in ((user, limit), (user,)):
                recent = self._durations.setdefault(alike, deque(maxlen=self._past))
                recent.append(processing_time)

    def predict(self, user: Ints, limit: Ints, elapsed: Ints) -> Ints:
        """Predicts processing times, see `Predictor`."""
        rows = list(zip(user.tolist(), limit.tolist(), elapsed.tolist(), strict=True))
        of_row = {row: self._expected(*row) for row in set(rows)}  # many wait alike
        expected = [of_row[row] for row in rows]
        return _plausible(np.array(expected, dtype=np.int64), limit, elapsed)

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

    def draw(
        self, user: Ints, limit: Ints, elapsed: Ints, times: int, random: np.random.Generator
    ) -> Ints:
        """Draws processing times, each longer than what has elapsed.

        They are those of survivors as in `predict`; of the user's jobs, else of anybody's with the
        same limit, else of anybody's. Who submits many jobs submits many that last as long: in one
        draw all jobs of a user stand at the same place among their survivors.

        Args:
            user: as for `predict`.
            limit: likewise.
            elapsed: likewise.
            times: how many draws of all of them.
            random: to draw with.

        Returns:
            int64[times, jobs], seconds; at most the limit, unless that has passed.
        """
        if len(user) == 0:
            return np.empty((times, 0), dtype=np.int64)
        _, whose = np.unique(user, return_inverse=True)
        place = random.random((times, whose.max() + 1))[:, whose.reshape(-1)]
        rows, kind = np.unique(np.stack((user, limit, elapsed)), axis=1, return_inverse=True)
        kind = kind.reshape(-1)
        order = np.argsort(kind, kind="stable")
        of_kind = np.split(order, np.cumsum(np.bincount(kind))[:-1])
        drawn = np.empty((times, len(user)), dtype=np.int64)
        for row, jobs in zip(rows.T.tolist(), of_kind, strict=True):
            drawn[:, jobs] = self._at(place[:, jobs], *row)
        return np.stack([_plausible(one, limit, elapsed) for one in drawn])

    def _at(self, place: Floats, user: int, limit: int, elapsed: int) -> Ints:
        """Returns the processing times at places from 0 to 1 among survivors."""
        own = (self._durations.get(alike, ()) for alike in ((user, limit), (user,)))
        others = (self._anybody.get(asked, ()) for asked in (limit, _ANY_LIMIT))
        alike, alike_others = self._surviving(own, elapsed), self._surviving(others, elapsed)
        # as if some others were the user's, since what is new cannot be among a user's past
        places = place * (len(alike) + OTHERS)
        of_others = _at(alike_others, np.maximum(places - len(alike), 0) / OTHERS, elapsed)
        if len(alike) == 0:
            return of_others
        return np.where(
            places < len(alike), _at(alike, np.minimum(places / len(alike), 1), elapsed), of_others
        )

    def _surviving(self, known: Iterable[Iterable[int]], elapsed: int) -> list[int]:
        """Returns which are longer, of the first of which that are enough, else of the last."""
        longer: list[int] = []
        for seconds in known:
            longer = [one for one in seconds if one > elapsed]
            if len(longer) >= self._enough:
                break
        return longer


def _at(survivors: Sequence[int], place: Floats, elapsed: int) -> Ints:
    """Returns the processing times at places from 0 to 1 among survivors."""
    if not survivors:  # as likely as not it lasts as long again
        ratio = 1 / np.maximum(1 - place, 0.1)
        return np.ceil(ratio * max(elapsed, DEFAULT_SECONDS // 2)).astype(np.int64)
    ordered = np.sort(np.array(survivors, dtype=np.int64))
    found: Ints = ordered[np.minimum(place * len(ordered), len(ordered) - 1).astype(np.int64)]
    return found


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


def _plausible(expected: Ints, limit: Ints, elapsed: Ints) -> Ints:
    """Returns more than has elapsed; the limit, or an hour, where nothing is known."""
    fallback = np.where(limit == UNKNOWN, np.maximum(2 * elapsed, DEFAULT_SECONDS), limit)
    found = np.where(expected == UNKNOWN, fallback, expected)
    going_on = np.where(found <= elapsed, 2 * elapsed + 1, found)
    return np.where(elapsed < limit, np.minimum(going_on, limit), going_on)
