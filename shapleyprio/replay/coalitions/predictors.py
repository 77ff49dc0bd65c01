"""Predictions of how long unfinished jobs will last."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from shapleyprio.replay.coalitions.game import Ints
from shapleyprio.replay.coalitions.options import PREDICTORS
from shapleyprio.replay.coalitions.survivors import Survivors, plausible
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.workloads.log import UNKNOWN


class Predictor(Protocol):
    """Predicts processing times. It learns of jobs in the order in which they ended."""

    @abstractmethod
    def learn(self, user: int, limit: int, processors: int, processing_time: int) -> None:
        """Takes in a job that has ended; user and limit are UNKNOWN if they are unknown."""

    @abstractmethod
    def predict(self, user: Ints, limit: Ints, processors: Ints, elapsed: Ints) -> Ints:
        """Predicts processing times in seconds, each longer than what has elapsed.

        Args:
            user: int64[n], code of each unfinished job's user, UNKNOWN where not known.
            limit: int64[n], requested processing time, UNKNOWN where not known.
            processors: int64[n], that each has or wants.
            elapsed: int64[n], seconds each has run; 0 if it has not started.
        """


class LastTwo:
    """The mean of the user's last two jobs (Tsafrir, Etsion & Feitelson 2007)."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}

    def learn(self, user: int, limit: int, processors: int, processing_time: int) -> None:  # noqa: ARG002
        """Takes in a job that has ended, see `Predictor`."""
        if user != UNKNOWN:
            before = self._last.get(user)
            self._last[user] = (before[1] if before else processing_time, processing_time)

    def predict(self, user: Ints, limit: Ints, processors: Ints, elapsed: Ints) -> Ints:  # noqa: ARG002
        """Predicts processing times, see `Predictor`."""
        last = [self._last.get(one) for one in user.tolist()]
        expected = [sum(two) // 2 if two else UNKNOWN for two in last]
        return plausible(np.array(expected, dtype=np.int64), limit, elapsed)


class Limit:
    """The time limit."""

    def learn(self, user: int, limit: int, processors: int, processing_time: int) -> None:
        """Ignores ended jobs, see `Predictor`."""

    def predict(self, user: Ints, limit: Ints, processors: Ints, elapsed: Ints) -> Ints:  # noqa: ARG002
        """Predicts processing times, see `Predictor`."""
        return plausible(limit, limit, elapsed)


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
    zip(PREDICTORS, (Survivors, LastTwo, Limit), strict=True)
)
