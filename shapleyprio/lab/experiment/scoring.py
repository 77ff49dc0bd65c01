"""Scores of forecasts, and what they are held against."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from statistics import median

import numpy as np

from shapleyprio.replay.coalitions.knowledge import Limit
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.forecasts.forecast import StartForecast
from shapleyprio.replay.forecasts.futures import STEP, Columns, Order, starts_in
from shapleyprio.replay.forecasts.present import Present
from shapleyprio.replay.workloads.workload import Workload

LAST_JOBS = 20
"""Jobs of which the mean wait is taken."""

MOST_TRIES = 9
"""Futures of one day, and of ever longer ones up to more than a century."""


class MeanWaits:
    """Expects that a job waits as long as the last ones of its organization and size did.

    A size has those within a factor of two. Without any of that size the organization's last ones
    count.

    Args:
        workload: what was scheduled.
        schedule: of it.
    """

    def __init__(self, workload: Workload, schedule: Schedule) -> None:
        self._workload = workload
        starts = dict(zip(schedule.job[::-1].tolist(), schedule.start[::-1].tolist(), strict=True))
        self._starts = sorted(starts.items(), key=lambda item: item[1])
        self._known = 0
        self._waits: dict[tuple[int, ...], deque[int]] = defaultdict(
            lambda: deque(maxlen=LAST_JOBS)
        )

    def start_of(self, job: int, t: int) -> int:
        """Returns when a job of the workload is expected to start, from t on, which never falls."""
        while self._known < len(self._starts) and self._starts[self._known][1] <= t:
            other, start = self._starts[self._known]
            for alike in self._kinds(other):
                self._waits[alike].append(start - int(self._workload.release[other]))
            self._known += 1
        found = next((self._waits[kind] for kind in self._kinds(job) if self._waits[kind]), None)
        wait = round(sum(found) / len(found)) if found else 0
        return max(int(self._workload.release[job]) + wait, t)

    def _kinds(self, job: int) -> tuple[tuple[int, ...], ...]:
        organization = int(self._workload.organization[job])
        return (organization, int(self._workload.processors[job]).bit_length()), (organization,)


def widened(scored: Iterable[tuple[StartForecast, int]]) -> list[StartForecast]:
    """Returns forecasts with their intervals widened by what was observed before each was made.

    Args:
        scored: forecasts in order of their moments, and when their jobs started.
    """
    found, errors = list[StartForecast](), list[float]()
    to_come: list[tuple[int, float]] = []
    for forecast, start in scored:
        while to_come and to_come[0][0] <= forecast.t:
            errors.append(heappop(to_come)[1])
        found.append(forecast.widened(errors))
        heappush(to_come, (start, forecast.error(start)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What forecasts were worth.

    Attributes:
        count: of forecasts.
        coverage: share of the intervals in which the jobs started; None without any.
        error: median of the absolute errors of the median, in seconds; likewise.
    """

    count: int
    coverage: float | None
    error: float | None


def score_of(forecasts: Sequence[tuple[StartForecast, int]]) -> Score:
    """Scores forecasts by when their jobs started."""
    if not forecasts:
        return Score(count=0, coverage=None, error=None)
    held = sum(one.early <= start <= one.late for one, start in forecasts)
    return Score(
        count=len(forecasts),
        coverage=held / len(forecasts),
        error=float(median(abs(one.median - start) for one, start in forecasts)),
    )


def by_limits(present: Present, order: Order) -> Ints:
    """Plays the future in which jobs last as long as their limits, and no others come.

    So does Slurm, for what it says when a job will start.

    Returns:
        int64[jobs of the present], when each starts; NEVER if not in a century.
    """
    jobs = present.jobs
    lengths = Limit().predict(present.user, jobs.limit, jobs.processors, present.elapsed)
    nothing = Columns(*(np.zeros(0, dtype=np.int64) for _ in Columns._fields))
    starts = present.start
    for tries in range(MOST_TRIES):
        starts = starts_in(present, lengths, nothing, order, days=STEP**tries)
        if (starts != NEVER).all():
            break
    return starts
