"""Shapley values of a month, from scratch and again when an hour was added.

``python -m shapleyprio.lab.bench.replay.recompute K LOAD DAYS WIDE`` computes both for K
organizations with a horizon of so many days, 0 for none, and prints the seconds of one core that
they took. It has a process of its own, so that its memory can be measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from time import process_time

import numpy as np

from shapleyprio.common.wording import DAY, HOUR
from shapleyprio.common.workers import PYTHON
from shapleyprio.lab.bench.measure import (
    BenchParameters,
    Measurement,
    of_runs,
    repeatedly,
    run_apart,
)
from shapleyprio.replay.coalitions.estimate import Estimator
from shapleyprio.replay.coalitions.game import Game, Ints, game_with
from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.choices import WIDE, Wide
from shapleyprio.replay.workloads.dealing import processor_shares
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Window, Workload

DAYS = 30
JOBS = 101_000
"""Released in these days; 600 to 1,500 of them have not ended."""

PROCESSORS = 4_000
MOST_PROCESSORS = 16
BATCH = 20
"""Jobs that a user submits together, in the mean."""

SPREAD, LONGEST = 1.5, 50
"""Deviation of the logarithm of processing times, and the longest one in medians."""

SEED = 1
COALITIONS = 500
HORIZON_DAYS = (0, 7)
RUNS = 3
ONE_CORE = ("env", "OPENBLAS_NUM_THREADS=1")
"""Without it numpy's least squares wait for other cores, and the waiting counts."""

MEGABYTES_BELOW = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputeCase:
    """So many organizations.

    Attributes:
        organizations: how many.
        load: so much work is released as all processors could do in so many months. With 50
            organizations it is chosen so that whole and cut jobs wait equally long: what a
            coalition does is certain up to when the longest wait began, and no further.
        wide: what becomes of wide jobs.
        what: is special about it.
        unions: in how many the organizations stand together; None if each stands alone.
        scratch_below, hour_below: targets for the seconds, None for none.
    """

    organizations: int
    load: float
    wide: Wide
    what: str = ""
    unions: int | None = None
    scratch_below: float | None = None
    hour_below: float | None = None


FOUR_DAYS, SEVENTEEN_DAYS = ", jobs wait for 4 days", ", jobs wait for 17 days"

CASES = (
    RecomputeCase(organizations=5, load=1.0, wide="rigid", hour_below=0.6),
    RecomputeCase(organizations=5, load=1.0, wide="expand", hour_below=0.3),
    RecomputeCase(organizations=8, load=1.0, wide="rigid", hour_below=0.6),
    RecomputeCase(organizations=8, load=1.0, wide="expand", scratch_below=2.0, hour_below=0.3),
    RecomputeCase(organizations=50, load=0.969, wide="rigid", what=FOUR_DAYS, hour_below=4.0),
    RecomputeCase(
        organizations=50,
        load=0.97,
        wide="expand",
        what=FOUR_DAYS,
        scratch_below=10.0,
        hour_below=2.0,
    ),
    RecomputeCase(organizations=60, load=0.969, wide="rigid", what=FOUR_DAYS),
    RecomputeCase(
        organizations=60, load=0.969, wide="rigid", what=f"{FOUR_DAYS}, in 8 unions", unions=8
    ),
    RecomputeCase(organizations=50, load=0.98, wide="rigid", what=SEVENTEEN_DAYS),
    RecomputeCase(
        organizations=50, load=0.98, wide="expand", what=SEVENTEEN_DAYS, scratch_below=10.0
    ),
)
"""An hour may cost twice as much with whole jobs, which start with easy backfilling."""


def measure_recompute(asked: BenchParameters) -> Iterator[Measurement]:
    """Measures how long Shapley values take on one core.

    Yields:
        seconds from scratch and for one more hour, and the memory of both.
    """
    for case in CASES:
        for days in HORIZON_DAYS:
            horizon = f"horizon of {days} days" if days else "no horizon"
            jobs = "whole jobs" if case.wide == "rigid" else "cut jobs"
            what = f"{jobs}, {case.organizations} organizations, {horizon}{case.what}"
            program = [*ONE_CORE, *PYTHON, "-m", "shapleyprio.lab.bench.replay.recompute"]
            program += [str(case.organizations), str(case.load), str(days), case.wide]
            program += [str(case.unions)] if case.unions else []
            ran = list(repeatedly(partial(run_apart, program), RUNS, asked.bar(what, RUNS)))
            seconds = [[float(word) for word in one.last_line.split()] for one in ran]
            scratch, hour = zip(*seconds, strict=True)
            yield of_runs(
                "recompute", f"{what}: from scratch", scratch, unit="s", below=case.scratch_below
            )
            yield of_runs(
                "recompute", f"{what}: an hour was added", hour, unit="s", below=case.hour_below
            )
            memory = [one.megabytes for one in ran]
            yield of_runs(
                "recompute", "peak memory of that", memory, unit="MB", below=MEGABYTES_BELOW
            )


def month(organizations: int, load: float, wide: Wide) -> Workload:
    """Makes up a month and an hour: users submit batches of similar jobs, more of them by day.

    They ask for twice the time that their jobs will need, in whole hours.

    Args:
        organizations: how many; they submit as much as they own, by Zipf's law.
        load: so much work is released as all processors could do in so many months.
        wide: what becomes of wide jobs; others pass them by easy backfilling.
    """
    random = np.random.default_rng((SEED, organizations))
    length = DAYS * DAY + HOUR
    batches = 2 * JOBS // BATCH
    submitted = random.uniform(0, length, 4 * batches)
    by_day = np.sin(2 * np.pi * submitted / DAY) > random.uniform(-1.5, 1.5, len(submitted))
    submitted = submitted[by_day][:batches]
    size = random.geometric(1 / BATCH, len(submitted))
    batch = np.repeat(np.arange(len(submitted)), size)[: JOBS * length // (DAYS * DAY)]
    release = (submitted[batch] + random.uniform(0, HOUR, len(batch))).astype(np.int64)
    release = np.minimum(release, length - 1)
    owned = np.array(processor_shares(organizations, shares="zipf", processors=PROCESSORS))
    organization = random.choice(organizations, len(submitted), p=owned / PROCESSORS)[batch]
    processors = 2 ** random.integers(0, MOST_PROCESSORS.bit_length(), len(submitted))[batch]
    mean = random.lognormal(0, SPREAD, len(submitted))
    seconds = mean[batch] * random.lognormal(0, SPREAD / 4, len(batch))
    seconds = np.minimum(seconds / np.median(seconds), LONGEST)
    seconds *= load * PROCESSORS * length / (seconds * processors).sum()
    order = np.lexsort((release, organization))
    processing_time = np.maximum(seconds[order].astype(np.int64), 1)
    return Workload(
        organizations=tuple(f"organization{number + 1}" for number in range(organizations)),
        owned=owned.astype(np.int64),
        window=Window(start=0, length=length),
        job=order + 1,
        organization=organization[order].astype(np.int32),
        release=release[order],
        processing_time=processing_time,
        processors=processors[order],
        limit=-(-2 * processing_time // HOUR) * HOUR,
        start=np.full(len(batch), UNKNOWN, dtype=np.int64),
        position=order,
        wide=wide,
        backfill="easy",
    )


def known_at(workload: Workload, start: Ints, t: int, horizon: int | None) -> Game:
    """Returns what is known at a moment; unfinished jobs are expected to last as long again.

    None is expected to exceed its limit.

    Args:
        workload: jobs and processors.
        start: int64[jobs], when each of them started.
        t: seconds from the window's begin.
        horizon: as in `Game`.
    """
    order = np.lexsort((workload.position, workload.release))
    order = order[workload.release[order] <= t]
    elapsed = np.maximum(t - start[order], 0)
    seconds = workload.processing_time[order]
    expected = np.minimum(2 * elapsed + HOUR, workload.limit[order])
    return game_with(
        replace(workload, horizon=horizon),
        order,
        np.where(elapsed >= seconds, seconds, expected),
        until=t,
        certain=np.minimum(elapsed, seconds),
    )


def main(organizations: int, load: float, days: int, wide: Wide, unions: int = 0) -> None:
    """Estimates twice, and prints how many seconds of one core that took."""
    horizon = days * DAY or None
    workload = month(organizations, load, wide)
    if unions:
        workload = replace(workload, unions=tuple(u % unions for u in range(organizations)))
    schedule = run_policy(workload, "fairshare")
    start = np.full(len(workload.job), 2**62)
    np.minimum.at(start, schedule.job, schedule.start)
    now = DAYS * DAY
    _seconds(known_at(workload, start, t, horizon) for t in (HOUR, 2 * HOUR))  # compiles
    print(*_seconds(known_at(workload, start, t, horizon) for t in (now, now + HOUR)))


def _seconds(games: Iterable[Game]) -> list[float]:
    """Returns the seconds of one core for each of the games, which follow each other."""
    estimator = Estimator(budget=COALITIONS)
    took = []
    for game in games:
        began = process_time()
        estimator.estimate(game)
        took.append(process_time() - began)
    return took


if __name__ == "__main__":
    main(
        int(sys.argv[1]),
        float(sys.argv[2]),
        int(sys.argv[3]),
        WIDE[WIDE.index(sys.argv[4])],
        *map(int, sys.argv[5:]),
    )
