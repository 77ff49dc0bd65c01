"""What an observer of the consortium's schedule knows and predicts: the game so far."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from shapleyprio.replay.coalitions.game import Game, Ints, game_with
from shapleyprio.replay.coalitions.survivors import Survivors, plausible
from shapleyprio.replay.engine.state import Record
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.workloads.choices import PREDICTORS
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload


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


class Knowledge:
    """Follows a schedule as it is decided, and knows nothing that lies ahead.

    A coalition may start a job earlier than the consortium did. How long it lasts is known once
    it has ended in the consortium's schedule; until then it is predicted.

    Args:
        workload: what is scheduled.
        predictor: of processing times, without any knowledge yet; None for an observer who knows
            the processing time of every job that was released.
    """

    def __init__(self, workload: Workload, predictor: Predictor | None) -> None:
        self._workload = workload
        self._predictor = predictor
        self._user = np.full(len(workload.job), UNKNOWN, dtype=np.int64)
        self._start = self._user.copy()
        self._ended = np.zeros(len(workload.job), dtype=np.bool_)
        self._entries = 0
        order = np.lexsort((workload.position, workload.release))
        self._order, self._release = order, workload.release[order]
        if predictor is not None and workload.history is not None:
            past = workload.history
            self._user = past.user
            _teach(
                predictor,
                past.past_user,
                past.past_limit,
                past.past_processors,
                past.past_processing_time,
            )

    def game(self, record: Record, t: int) -> Game:
        """Returns the game up to a moment.

        Args:
            record: the consortium's schedule, with all starts before t; later ones do not count.
            t: seconds from the window's begin; it never falls.
        """
        workload = self._workload
        released = self._order[: np.searchsorted(self._release, t, side="right")]
        processing_time, certain = self._processing_time(record, released, t)
        return game_with(workload, released, processing_time, until=t, certain=certain)

    def _processing_time(self, record: Record, released: Ints, t: int) -> tuple[Ints, Ints]:
        """Returns processing times as far as they are known, and what is certain of them."""
        seconds = self._workload.processing_time[released]
        if self._predictor is None:
            return seconds, seconds
        self._note_starts(record)
        begun = self._start[released]
        has_begun = (begun != UNKNOWN) & (begun < t)
        ended = has_begun & (begun + seconds <= t)
        self._learn(self._predictor, released[ended])
        unfinished = ~ended
        jobs = released[unfinished]
        certain = np.where(ended, seconds, np.where(has_begun, t - begun, 0))
        known: Ints = seconds.copy()
        known[unfinished] = self._predictor.predict(
            self._user[jobs],
            self._workload.limit[jobs],
            self._workload.processors[jobs],
            certain[unfinished],
        )
        return known, certain

    def _note_starts(self, record: Record) -> None:
        """Notes when jobs started whose first copy did since the last call."""
        size = int(record.size[0])
        job, start = record.job[self._entries : size], record.start[self._entries : size]
        new = self._start[job] == UNKNOWN
        # entries are in order of time: written backwards, each job's first copy is written last
        self._start[job[new][::-1]] = start[new][::-1]
        self._entries = size

    def _learn(self, predictor: Predictor, ended: Ints) -> None:
        """Hands the predictor the jobs that ended since the last call, in the order of ends."""
        new = ended[~self._ended[ended]]
        workload = self._workload
        end = self._start[new] + workload.processing_time[new]
        in_order = new[np.argsort(end, kind="stable")]
        _teach(
            predictor,
            self._user[in_order],
            workload.limit[in_order],
            workload.processors[in_order],
            workload.processing_time[in_order],
        )
        self._ended[new] = True


def _teach(
    predictor: Predictor, user: Ints, limit: Ints, processors: Ints, processing_time: Ints
) -> None:
    columns = (user, limit, processors, processing_time)
    for job in zip(*(column.tolist() for column in columns), strict=True):
        predictor.learn(*job)
