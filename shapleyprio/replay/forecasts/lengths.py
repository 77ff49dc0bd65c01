"""Lengths: how long jobs may last, drawn from what is known of their users' past and of others'."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from shapleyprio.replay.coalitions.game import Ints
from shapleyprio.replay.coalitions.predictors import DEFAULT_SECONDS, Combined, plausible
from shapleyprio.replay.workloads.log import UNKNOWN

Floats = NDArray[np.float64]

OTHERS = 3
"""Survivors of anybody's jobs that count beside those of the user's when lengths are drawn."""

PAST_OF_ANYBODY = 100
"""Recent jobs of anybody from which lengths are drawn where a user has too few."""

_ANY_LIMIT = UNKNOWN - 1


class Lengths(Combined):
    """Predicts processing times, and draws them, from the same survivors."""

    def __init__(self) -> None:
        super().__init__()
        self._anybody: dict[int, deque[int]] = {}

    def learn(self, user: int, limit: int, processing_time: int) -> None:
        """Takes in a job that has ended, see `Predictor`."""
        super().learn(user, limit, processing_time)
        for asked in (limit, _ANY_LIMIT):
            others = self._anybody.setdefault(asked, deque(maxlen=PAST_OF_ANYBODY))
            others.append(processing_time)

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
            drawn[:, jobs] = self._drawn_at(place[:, jobs], *row)
        return np.stack([plausible(one, limit, elapsed) for one in drawn])

    def _drawn_at(self, place: Floats, user: int, limit: int, elapsed: int) -> Ints:
        """Returns the processing times at places among survivors, of the user and of others."""
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
