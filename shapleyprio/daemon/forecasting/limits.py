"""What a long time limit costs a job that waits, told by futures that differ in nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from shapleyprio.daemon.forecasting.messages import LimitCost
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.forecasts.present import Present

TOO_LONG = 2
"""A limit is too long that is so many times what such jobs need."""

LEAST_SECONDS = 600
"""What costs less is not worth a word ..."""

CERTAIN = 3
"""... nor is what is less than so many standard errors."""


def cost_of_limit(
    present: Present, job: int, predictor: Survivors, starts_of: Callable[[Present], Ints]
) -> LimitCost | None:
    """Compares futures in which a job has its limit with those in which it has a shorter one.

    Args:
        present: when they begin.
        job: that waits, by its index among the present's.
        predictor: that has learned of all jobs that have ended.
        starts_of: returns int64[futures], when the job starts in futures of a present, the same
            ones each time.

    Returns:
        None if it has no limit or one that suits it, if too few jobs are known, or if the
        difference may be chance.
    """
    jobs = present.jobs
    asked = int(jobs.limit[job])
    compared, longest = predictor.nine_of_ten(
        int(present.user[job]), asked, int(jobs.processors[job])
    )
    limit = -(-longest // 60) * 60
    if not compared or asked < TOO_LONG * limit:
        return None
    limits = jobs.limit.copy()
    limits[job] = limit
    shorter = replace(present, jobs=replace(jobs, limit=limits))
    starts = np.stack([starts_of(present), starts_of(shorter)])
    if (starts == NEVER).any():
        return None
    gains = (starts[0] - starts[1]).astype(float)
    sooner, error = float(gains.mean()), float(gains.std(ddof=1)) / sqrt(len(gains))
    if sooner < max(LEAST_SECONDS, CERTAIN * error):
        return None
    return LimitCost(jobs=compared, limit=limit, sooner=round(sooner))
