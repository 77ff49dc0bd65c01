"""Futures: how a schedule may go on, with jobs that may be released soon, played by the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shapleyprio.common.wording import DAY
from shapleyprio.replay.coalitions.estimate import Estimate
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.engine import engine
from shapleyprio.replay.engine.keys import Ints, keys_of, no_keys
from shapleyprio.replay.engine.limits import check_range, estimated_block
from shapleyprio.replay.engine.state import NEVER, Record, World
from shapleyprio.replay.forecasts.present import Present, brought_to, releasable
from shapleyprio.replay.policies import shapley
from shapleyprio.replay.policies.one_schedule import one_world
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Window, Workload

WEEK = 7 * DAY
MOST_WEEKS = 4
"""So many weeks ago the stretch may be that a future takes its arrivals from."""

LONGEST = MOST_WEEKS * 7
"""Days of arrivals at most: later ones would be taken from what is still to come."""

FURTHEST_SECONDS = LONGEST * DAY
"""What comes later than all futures are played is all alike."""


class Columns(NamedTuple):
    """Jobs; `position` orders those that are released at one second.

    A processing time is UNKNOWN if the job had not ended. A partition is an index into those of
    `Bays`, 0 without bays.
    """

    release: Ints
    organization: Ints
    processors: Ints
    limit: Ints
    user: Ints
    processing_time: Ints
    position: Ints
    partition: Ints

    def at(self, jobs: Ints) -> Columns:
        """Returns some of them, by indices."""
        return Columns(*(column[jobs] for column in self))


@dataclass(frozen=True, slots=True)
class ReleasedJobs:
    """What was released until now.

    Attributes:
        jobs: in order of release, none later than now.
        first: second from which on all are known.
    """

    jobs: Columns
    first: int

    def arrivals(
        self, t: int, days: int, predictor: Survivors, random: np.random.Generator
    ) -> Columns:
        """Draws what is released after t.

        Each day from t on is one of the same hours: one to four weeks before, or, if so much is
        not known, as many days before. More days begin with the same arrivals as fewer do.

        Args:
            t: now, in the same seconds as the releases.
            days: how many to draw.
            predictor: of processing times of jobs that have not ended yet.
            random: to draw with.
        """
        drawn = [self._day(t, day, predictor, random) for day in range(days)]
        found = Columns(*(np.concatenate(columns) for columns in zip(*drawn, strict=True)))
        return found.at(np.argsort(found.release, kind="stable"))

    def _day(self, t: int, day: int, predictor: Survivors, random: np.random.Generator) -> Columns:
        begin, chance = t + day * DAY, random.random()
        known = [s for s in shifts(day) if begin - s[0] >= self.first]
        weeks = [s for s in known if s[1]] or known
        if not weeks:
            return self.jobs.at(np.zeros(0, dtype=np.int64))
        shift = weeks[int(chance * len(weeks))][0]
        first, last = np.searchsorted(
            self.jobs.release, [begin - shift + 1, begin - shift + DAY + 1]
        )
        found = self.jobs.at(np.arange(first, last))
        lengths, unknown = found.processing_time, found.processing_time == UNKNOWN
        if unknown.any():
            asked = (found.user[unknown], found.limit[unknown], found.processors[unknown])
            lengths[unknown] = predictor.draw(*asked, 0 * asked[0], 1, random)[0]
        return found._replace(release=found.release + shift, processing_time=lengths)


def shifts(day: int) -> list[tuple[int, bool]]:
    """Returns how many seconds before a day from now on a stretch may lie, and if that is weeks.

    None reaches into what is still to come.
    """
    weeks = [w * WEEK for w in range(1, MOST_WEEKS + 1) if w * 7 > day]
    days = [d * DAY for d in range(day + 1, day + 7)]
    return [(shift, True) for shift in weeks] + [(shift, False) for shift in days]


FUTURES = 40
"""Futures that are played of a present."""

STEP = 4
"""By so much longer a future is tried when not all that waits now has started in it."""

KEYS_SECONDS = 4096
"""Seconds of a block of keys: longer ones are computed in vain, shorter ones too often."""


@dataclass(frozen=True, slots=True)
class ByCode:
    """The order of a policy that looks at one schedule alone, by its code of `engine.codes`."""

    code: int

    def steps(self, present: Present, workload: Workload, seed: int) -> tuple[World, Iterator[int]]:
        """Returns a world at present, and what brings it to the end of the workload's window."""
        wide = check_range(workload)
        world = brought_to(present, workload, one_world(workload, no_keys(), seed, wide=wide))
        return world, engine.run(self.code, world, workload.window.length)


@dataclass(frozen=True, slots=True)
class ByEstimate:
    """The order by φ − ψ, with φ going on as at its last estimate.

    Attributes:
        estimate: of contributions.
        moment: the second that it is of, not after the present.
    """

    estimate: Estimate
    moment: int

    def steps(self, present: Present, workload: Workload, seed: int) -> tuple[World, Iterator[int]]:
        """Returns a world at present, and what brings it to the end of the workload's window."""
        k, length = len(workload.organizations), workload.window.length
        block = estimated_block(workload, KEYS_SECONDS, self.estimate.denominator)
        keys = keys_of(rows=k, coalitions=1, block=block, lattice=False)
        fresh = one_world(workload, keys, seed, wide=block.wide)
        world = brought_to(present, workload, fresh)
        return world, shapley.run(world, contributions=self.at, length=length)

    def at(self, _record: Record, second: int) -> Estimate:
        """Returns the estimate as it has gone on until then."""
        return self.estimate.later(second - self.moment)


Order = ByCode | ByEstimate
"""How a schedule goes on."""


def starts_in(
    present: Present,
    lengths: Ints,
    arrivals: Columns,
    order: Order,
    *,
    days: int,
    seed: int = 0,
    wanted: Ints | None = None,
) -> Ints:
    """Plays one future.

    Args:
        present: where it begins.
        lengths: int64[jobs of the present], processing times; longer than what has elapsed.
        arrivals: jobs that will be released, later than now.
        order: of the policy.
        days: that it takes at most; it ends as soon as all that is wanted has started.
        seed: of draws of processors.
        wanted: int64[...], which jobs of the present; None for all that wait.

    Returns:
        int64[jobs of the present], when each starts; NEVER if not before the end.
    """
    workload = _workload(present, lengths, arrivals, present.t + days * DAY)
    world, steps = order.steps(present, workload, seed)
    wanted = np.flatnonzero(present.waits) if wanted is None else wanted
    left, size = np.isin(workload.job, wanted), 0
    for _ in steps:
        known, size = size, int(world.record.size[0])
        left[world.record.job[known:size]] = False
        if not left.any():
            break
    job = workload.job[world.record.job[:size]]
    found = np.where(present.waits, NEVER, present.start)
    found[job[job != UNKNOWN]] = world.record.start[:size][job != UNKNOWN]
    return found


def _workload(present: Present, lengths: Ints, arrivals: Columns, until: int) -> Workload:
    """Returns present jobs, numbered by their places, and later ones, numbered UNKNOWN."""
    now, bays = present.jobs, present.jobs.bays
    room = now.system_processors if bays is None else bays.processors[arrivals.partition]
    fits = np.flatnonzero((arrivals.processors <= room) & (arrivals.release < until))
    later = arrivals.at(fits)
    unknown = np.full(len(later.release), UNKNOWN, dtype=np.int64)
    organization = np.concatenate((now.organization, later.organization))
    release = np.concatenate((now.release, later.release))
    position = np.concatenate((now.position, later.position))
    start = np.concatenate((present.start, unknown))
    order = np.lexsort((position, release, start == UNKNOWN, organization))
    number = np.concatenate((np.arange(len(now.release)), unknown))
    if bays is not None:
        partition = np.concatenate((bays.partition, later.partition))[order]
        bays = replace(bays, partition=partition.astype(np.int32))
    return replace(
        now,
        window=Window(start=now.window.start, length=until),
        job=number[order],
        organization=organization[order].astype(np.int32),
        release=release[order],
        processing_time=np.concatenate((lengths, later.processing_time))[order],
        processors=np.concatenate((now.processors, later.processors))[order],
        limit=np.concatenate((now.limit, later.limit))[order],
        start=start[order],
        position=position[order],
        placed=None,
        horizon=None,
        bays=bays,
    )


def play(
    present: Present,
    order: Order,
    predictor: Survivors,
    past: ReleasedJobs,
    random: np.random.Generator,
    *,
    futures: int = FUTURES,
    wanted: Ints | None = None,
    drawn_by: Ints | None = None,
    known: Ints | None = None,
) -> Ints:
    """Plays futures with lengths and arrivals as they may be.

    Args:
        present: where they begin.
        order: of the policy.
        predictor: that has learned of all jobs that have ended.
        past: what was released.
        random: to draw with.
        futures: how many.
        wanted: int64[...], which jobs of the present alone; None for all that wait and are
            released some day.
        drawn_by: int64[jobs of the present], limits by which lengths are drawn, as if jobs had had
            those when their users decided on their work; None for their own.
        known: int64[jobs of the present], their processing times; UNKNOWN for those to draw. None
            to draw all.

    Returns:
        int64[futures, jobs of the present], when each starts; NEVER if not within four weeks.
    """
    jobs = present.jobs
    if wanted is None:
        never = present.after.keys() - releasable(present.after)
        wanted = np.setdiff1d(np.flatnonzero(present.waits), list(never))
    drawn_by = jobs.limit if drawn_by is None else drawn_by
    lengths = predictor.draw(
        present.user, drawn_by, jobs.processors, present.elapsed, futures, random
    )
    ended = np.flatnonzero(present.waits & (jobs.limit < drawn_by))  # by their shorter limits
    lengths[:, ended] = np.minimum(lengths[:, ended], jobs.limit[ended])
    if known is not None:
        lengths = np.where(known == UNKNOWN, lengths, known)
    found, days = [], 1
    for one, seed in zip(lengths, random.integers(2**62, size=futures).tolist(), strict=True):
        while True:
            arrivals = past.arrivals(present.t, days, predictor, np.random.default_rng(seed))
            starts = starts_in(present, one, arrivals, order, days=days, seed=seed, wanted=wanted)
            if days == LONGEST or (starts[wanted] != NEVER).all():
                break
            days = min(days * STEP, LONGEST)
        found.append(starts)
    return np.stack(found)
