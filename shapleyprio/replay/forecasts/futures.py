"""Futures: how a schedule may go on from the present, played by the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from shapleyprio.common.wording import DAY
from shapleyprio.replay.coalitions import live
from shapleyprio.replay.coalitions.estimate import Estimate
from shapleyprio.replay.coalitions.survivors import Survivors
from shapleyprio.replay.engine import engine
from shapleyprio.replay.engine.keys import Ints, keys_of, no_keys
from shapleyprio.replay.engine.limits import check_range, estimated_block
from shapleyprio.replay.engine.state import NEVER, Record, World
from shapleyprio.replay.forecasts.arrivals import LONGEST, Columns, ReleasedJobs
from shapleyprio.replay.forecasts.dependent import releasable
from shapleyprio.replay.forecasts.present import Present, brought_to
from shapleyprio.replay.policies.one_schedule import one_world
from shapleyprio.replay.policies.shapley import expecting_limits
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Window, Workload

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
        fresh = expecting_limits(workload, one_world(workload, keys, seed, wide=block.wide))
        world = brought_to(present, workload, fresh)
        return world, live.run(world, contributions=self.at, length=length)

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
        placement="random" if now.placement == "recorded" else now.placement,
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
