"""Ref for any utility: SPAA 2013, Definition 3.1 and Fig. 1, literally, for small cases.

Every coalition keeps its own schedule. At each moment the coalitions decide by increasing size;
each tentatively starts the first job of every organization that waits and takes the one after
which utilities and contributions are closest in the Manhattan metric.

Where Fig. 1 leaves something open:

- Ties of the distance go to the largest φ − ψ, which is Fig. 3's rule for ψsp, and then to the
  organization listed first. A start changes no utility that looks only at what has happened, so
  that for all such utilities Fig. 3's rule is what decides.
- After a start, φ counts what it added to the coalition's value, as Definition 3.1 has it; the
  figure leaves φ as it was until the next moment.
"""

from __future__ import annotations

import heapq
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from random import Random

import numpy as np

from shapleyprio.common.errors import Remedy
from shapleyprio.fairness.shapley import members, next_potential, shapley
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.errors import UtilityError
from shapleyprio.replay.policies.loading import complaint
from shapleyprio.replay.policies.utilities import JobTimes, Utility
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.workloads.workload import Workload

LARGEST_WORK = 10**10
"""Largest 3^k·n² for n copies of k organizations, to which the time grows: some ten minutes."""


def ref_for(
    workload: Workload,
    utility: Utility,
    *,
    name: str,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Schedule:
    """Returns the schedule of Ref for a utility function.

    Args:
        workload: with wide jobs expanded; of k organizations and n copies, with 3^k·n² at most
            `LARGEST_WORK`.
        utility: see `shapleyprio.replay.policies.utilities`.
        name: of the utility; the schedule's policy is ``ref:NAME``.
        seed: of the draws of processors; they change no start.
        progress: called with the second of the window that was reached.

    Returns:
        A schedule with one entry for each copy; its contribution is the organizations' exact
        Shapley value of that utility at the window's end.

    Raises:
        UtilityError: the workload is rigid or too large, or the utility returned a float.
    """
    copies = int(workload.processors.sum(dtype=np.float64))
    _refuse_what_never_ends(workload, copies)
    began = time.perf_counter()
    ref = _Ref(workload, utility, name)
    ref.run(workload.window.length, progress)
    starts = ref.starts()
    owners = _owners(starts, workload, Random(seed))  # noqa: S311  # a fair draw, no secret
    seconds = time.perf_counter() - began
    return Schedule(
        policy=f"ref:{name}",
        seed=seed,
        job=np.array([job for job, _ in starts], dtype=np.int64),
        start=np.array([start for _, start in starts], dtype=np.int64),
        owner=np.array(owners, dtype=np.int32),
        copies=np.ones(len(starts), dtype=np.int64),
        contribution=ref.contributions(workload.window.length),
        seconds=seconds,
    )


def _refuse_what_never_ends(workload: Workload, copies: int) -> None:
    if workload.unions is not None:
        raise UtilityError("ref for an arbitrary utility supports no unions; leave the parents out")
    if workload.bays is not None:
        raise UtilityError(
            "ref for an arbitrary utility lets all jobs run anywhere; leave --respect-partitions "
            "out"
        )
    if workload.wide == "rigid":
        raise UtilityError(
            "ref for an arbitrary utility needs sequential jobs", Remedy.SEQUENTIAL_JOBS
        )
    k = len(workload.organizations)
    if 3**k * copies**2 > LARGEST_WORK:
        most = int((LARGEST_WORK // 3**k) ** 0.5)
        raise UtilityError(
            f"ref for an arbitrary utility takes {most} processors' jobs of {k} organizations at "
            f"most, here they ask for {copies}",
            Remedy.SHORTER_WINDOW,
        )


@dataclass(slots=True)
class _Copies:
    """An organization's copies in the order in which they start, here or anywhere.

    Attributes:
        job: of each copy, index into the workload.
        placed: each copy as it waits.
        released: how many are there by now.
    """

    job: list[int] = field(default_factory=list)
    placed: list[JobTimes] = field(default_factory=list)
    released: int = 0


@dataclass(slots=True)
class _Coalition:
    """A coalition with its own schedule.

    Attributes:
        mask: its members as bits.
        free: processors that nothing runs on.
        jobs: member -> its copies released so far; the first started[member] have started.
        started: member -> how many.
        order: member of each start, and when, as decided.
        ends: of running copies, a heap.
    """

    mask: int
    free: int
    jobs: dict[int, list[JobTimes]]
    started: dict[int, int]
    order: list[tuple[int, int]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def free_processors(self, t: int) -> None:
        while self.ends and self.ends[0] <= t:
            heapq.heappop(self.ends)
            self.free += 1

    def waiting(self) -> list[int]:
        return [u for u, jobs in self.jobs.items() if self.started[u] < len(jobs)]

    def everything_fits(self) -> bool:
        return sum(len(jobs) - self.started[u] for u, jobs in self.jobs.items()) <= self.free

    def with_first_started(self, u: int, t: int) -> list[JobTimes]:
        """Returns the member's jobs as they would be if its first waiting one started now."""
        first = self.started[u]
        jobs = self.jobs[u]
        return [*jobs[:first], jobs[first]._replace(start=t), *jobs[first + 1 :]]

    def start(self, u: int, t: int) -> int:
        """Starts the member's first waiting job and returns when it will end."""
        first = self.started[u]
        job = self.jobs[u][first]
        self.jobs[u][first] = job._replace(start=t)
        self.started[u] = first + 1
        self.order.append((u, t))
        self.free -= 1
        heapq.heappush(self.ends, t + job.processing_time)
        return t + job.processing_time


class _Ref:
    """All coalitions' schedules, complete up to the same moment."""

    def __init__(self, workload: Workload, utility: Utility, name: str) -> None:
        self._utility = utility
        self._name = name
        self._queues = _queues(workload)
        masks = range(1, 2 ** len(workload.organizations))
        self._coalitions = {
            mask: _Coalition(
                mask=mask,
                free=sum(int(workload.owned[u]) for u in members(mask)),
                jobs={u: [] for u in members(mask)},
                started=dict.fromkeys(members(mask), 0),
            )
            for mask in sorted(masks, key=int.bit_count)
        }
        self._potentials: dict[int, Fraction] = {}

    def run(self, until: int, progress: ProgressCallback | None) -> None:
        moments = sorted({job.release for queue in self._queues for job in queue.placed})
        last = -1
        while moments and (t := heapq.heappop(moments)) < until:
            if t == last:
                continue
            last = t
            self._release(t)
            self._potentials = {0: Fraction(0)}
            for coalition in self._coalitions.values():
                for end in self._decide(coalition, t):
                    heapq.heappush(moments, end)
            if progress is not None:
                progress(t)

    def starts(self) -> list[tuple[int, int]]:
        """Returns job and start of every copy in the schedule of all, in the order of decision."""
        everybody = max(self._coalitions)
        copies = [iter(queue.job) for queue in self._queues]
        return [(next(copies[u]), t) for u, t in self._coalitions[everybody].order]

    def contributions(self, t: int) -> tuple[Fraction, ...]:
        values = [
            sum(self._utilities(self._coalitions[mask], t).values()) if mask else 0
            for mask in range(len(self._coalitions) + 1)
        ]
        return shapley(values)

    def _release(self, t: int) -> None:
        for u, queue in enumerate(self._queues):
            before = queue.released
            while queue.released < len(queue.placed) and queue.placed[queue.released].release <= t:
                queue.released += 1
            if queue.released > before:
                for coalition in self._coalitions.values():
                    if u in coalition.jobs:
                        coalition.jobs[u] += queue.placed[before : queue.released]

    def _decide(self, coalition: _Coalition, t: int) -> Iterator[int]:
        """Starts what the coalition starts at t, and yields when that ends."""
        coalition.free_processors(t)
        while coalition.free and (waiting := coalition.waiting()):
            contested = len(waiting) > 1 and not coalition.everything_fits()
            u = self._select(coalition, waiting, t) if contested else waiting[0]
            yield coalition.start(u, t)

    def _select(self, coalition: _Coalition, waiting: list[int], t: int) -> int:
        """Executes Fig. 1's SelectAndSchedule, with UpdateVals before each start."""
        utilities = self._utilities(coalition, t)
        without = {u: self._potential(coalition.mask ^ (1 << u), t) for u in utilities}
        potential = next_potential(sum(utilities.values()), list(without.values()))
        owed = {u: potential - without[u] - utilities[u] for u in utilities}

        def distance(u: int) -> Fraction:
            gain = self._value(coalition.with_first_started(u, t), t) - utilities[u]
            share = Fraction(gain) / len(owed)
            others = (abs(owed[other] + share) for other in owed if other != u)
            return abs(owed[u] + share - gain) + sum(others)

        return min(waiting, key=lambda u: (distance(u), -owed[u]))

    def _potential(self, mask: int, t: int) -> Fraction:
        """Returns v of a coalition that has decided at t; only requested ones are computed."""
        known = self._potentials.get(mask)
        if known is None:
            value = sum(self._utilities(self._coalitions[mask], t).values())
            smaller = [self._potential(mask ^ (1 << u), t) for u in members(mask)]
            known = self._potentials[mask] = next_potential(value, smaller)
        return known

    def _utilities(self, coalition: _Coalition, t: int) -> dict[int, int | Fraction]:
        return {u: self._value(jobs, t) for u, jobs in coalition.jobs.items()}

    def _value(self, jobs: list[JobTimes], t: int) -> int | Fraction:
        try:
            value = self._utility(jobs, t)
        except Exception as error:
            raise UtilityError(
                f"utility {self._name!r} failed at second {t}: {complaint(error)}"
            ) from error
        if not isinstance(value, (int, Fraction)):
            raise UtilityError(
                f"utility {self._name!r} returned {value!r}; it must return an int or a "
                "fractions.Fraction"
            )
        return value


def _queues(workload: Workload) -> list[_Copies]:
    queues = [_Copies() for _ in workload.organizations]
    columns = (workload.organization, workload.release, workload.processing_time)
    rows = zip(*(column.tolist() for column in (*columns, workload.processors)), strict=True)
    for job, (u, release, processing_time, copies) in enumerate(rows):
        queues[u].job += [job] * copies
        queues[u].placed += [JobTimes(release, None, processing_time)] * copies
    return queues


def _owners(starts: list[tuple[int, int]], workload: Workload, random: Random) -> list[int]:
    """Draws the owner of each start's processor: each free processor is equally likely."""
    free = workload.owned.tolist()
    running: list[tuple[int, int]] = []
    drawn = []
    for job, start in starts:
        while running and running[0][0] <= start:
            free[heapq.heappop(running)[1]] += 1
        owner = bisect_right(list(accumulate(free)), random.randrange(sum(free)))
        free[owner] -= 1
        heapq.heappush(running, (start + int(workload.processing_time[job]), owner))
        drawn.append(owner)
    return drawn
