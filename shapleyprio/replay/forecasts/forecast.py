"""Forecasts: what futures say about each waiting job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, log
from typing import Literal

import numpy as np

from shapleyprio.common.wording import HOUR
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.forecasts.futures import FURTHEST_SECONDS
from shapleyprio.replay.forecasts.present import Present

COVERAGE = 0.8
"""The share of intervals that are to hold."""

OFFSET = 60
"""Seconds added to waits before their logarithms are taken: shorter errors do not matter."""

FEWEST_ERRORS = 10
"""From so many errors on they are heeded."""

MOST_ERRORS = 100
"""So many of the newest errors are heeded."""

WaitsFor = Literal["turn", "processors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartForecast:
    """When a job will start, as of a moment; seconds on one clock.

    Attributes:
        t: the moment.
        median: half of the futures had started it by then.
        early, late: the interval, in which it starts in 80 of 100 cases; NEVER for later than any
            future was played.
        within_hour: share of the futures in which it starts within an hour.
        waits_for: "processors" if it is the first of its organization and needs more than are
            free, else "turn".
    """

    t: int
    median: int
    early: int
    late: int
    within_hour: float
    waits_for: WaitsFor

    def error(self, start: int) -> float:
        """Returns by how much the interval missed a start, negative if it did not.

        It is the logarithm of the ratio of waits from t on, so that errors of all waits compare.
        """
        wait = _scaled(start - self.t)
        return max(_scaled(self.early - self.t) - wait, wait - _scaled(self.late - self.t))

    def widened(self, errors: Sequence[float]) -> StartForecast:
        """Returns the forecast with the interval that would have held so far (conformal).

        Args:
            errors: of forecasts of jobs that had started before t, the newest at the end.
        """
        heeded = sorted(errors[-MOST_ERRORS:])
        if len(heeded) < FEWEST_ERRORS:
            return self
        more = heeded[min(ceil((len(heeded) + 1) * COVERAGE), len(heeded)) - 1]
        return replace(
            self,
            early=min(self._moved(self.early, -more), self.median),
            late=max(self._moved(self.late, more), self.median),
        )

    def _moved(self, second: int, by: float) -> int:
        wait = _unscaled(_scaled(second - self.t) + by)
        return NEVER if second == NEVER or wait > FURTHEST_SECONDS else self.t + wait


def forecasts(present: Present, starts: Ints) -> dict[int, StartForecast]:
    """Returns a forecast of each job that waits.

    Args:
        present: when they are made.
        starts: int64[futures, jobs of the present], when each starts.

    Returns:
        Index of a job among the present's -> its forecast.
    """
    waiting = np.flatnonzero(present.waits)
    of_waiting = np.sort(starts[:, waiting], axis=0)
    # so high a rank of n has that chance if all orders of a start among futures are as likely
    ranks = np.clip(
        np.rint((len(starts) + 1) * np.array([(1 - COVERAGE) / 2, 0.5, (1 + COVERAGE) / 2])) - 1,
        0,
        len(starts) - 1,
    ).astype(int)
    soon = (of_waiting <= present.t + HOUR).mean(axis=0)
    heads = np.unique(present.jobs.organization[waiting], return_index=True)[1]
    first = np.zeros(len(waiting), dtype=np.bool_)
    first[heads] = True
    lacks = first & (present.jobs.processors[waiting] > present.free)
    return {
        job: StartForecast(
            t=present.t,
            early=early,
            median=median,
            late=late,
            within_hour=chance,
            waits_for="processors" if missing else "turn",
        )
        for job, (early, median, late), chance, missing in zip(
            waiting.tolist(),
            of_waiting[ranks].T.tolist(),
            soon.tolist(),
            lacks.tolist(),
            strict=True,
        )
    }


def _scaled(wait: int) -> float:
    return log(min(max(wait, 0), FURTHEST_SECONDS) + OFFSET)


def _unscaled(scaled: float) -> int:
    return max(round(exp(scaled)) - OFFSET, 0)
