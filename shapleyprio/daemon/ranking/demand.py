"""Which pending jobs count in an estimate, and since when.

A job counts from its EligibleTime, while nothing but its turn is missing. Slurm does not say since
when that is so: a job beyond a limit is eligible all the time. So every cycle notes which jobs wait
for something else, and such a job counts from the first cycle in which it no longer does. Its time
also restarts when its own organization lets a job go first that has counted for a shorter time.
Only jobs that do not count from their EligibleTime are on record.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, compress
from math import inf
from operator import attrgetter, mul
from typing import NamedTuple

from shapleyprio.fairness.runs import Run
from shapleyprio.slurm.layout import Node, Partition
from shapleyprio.slurm.port import ITS_TURN, PendingJob
from shapleyprio.store import KeptBack


class Counted(NamedTuple):
    """What of a pending job counts.

    Attributes:
        since: second from which it counts.
        tasks: how many of its tasks; 1 for a plain job.
        partition: in which it counts, of those in which it may start.
    """

    since: int
    tasks: int
    partition: str


class CountingJobs(NamedTuple):
    """What counts of the pending jobs of one account that may start in the same partitions.

    Attributes:
        jobs: how many they are.
        processors: that they ask for.
        since: second from which the first of them counts.
    """

    jobs: int
    processors: int
    since: int


class Rooms:
    """Where jobs compete for the same nodes: partitions that share some are one room.

    Args:
        partitions: by name.
        nodes: by name, as they are now.
    """

    def __init__(self, partitions: Mapping[str, Partition], nodes: Mapping[str, Node]) -> None:
        free = {name: node.tres.get("cpu", 0) for name, node in nodes.items() if not node.closed}
        self._widths = {
            name: sum(free.get(node, 0) for node in partition.nodes)
            for name, partition in partitions.items()
        }
        self._rooms = _connected(partitions.values())
        self.widest = cache(self._widest)
        self.width = cache(self._width)
        self.of = cache(self._of)

    def _widest(self, names: str) -> str:
        """Returns which of these partitions has the most CPUs on nodes that are not closed.

        Of a partition that has just been added it is not known, and so no bound.
        """
        return max(names.split(","), key=self._width_of)

    def _width(self, names: str) -> float:
        """Returns how many CPUs the widest of these partitions has."""
        return self._width_of(self.widest(names))

    def _width_of(self, name: str) -> float:
        return self._widths.get(name, inf)

    def _of(self, names: str) -> frozenset[str]:
        """Returns the rooms of these partitions."""
        return frozenset(self._rooms.get(name, name) for name in names.split(","))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What decides beside the pending jobs themselves.

    Attributes:
        t: second of this cycle.
        rooms: where they may start.
        organization_of: returns for whom pending jobs count, by account and partitions.
        own_priority: returns the priority that a pending job has without our points.
        started: runs that were not known in the last cycle.
        running_tasks: returns how many tasks of each of some arrays run.
    """

    t: int
    rooms: Rooms
    organization_of: Callable[[str, str], str]
    own_priority: Callable[[PendingJob], int]
    started: Collection[Run]
    running_tasks: Callable[[Collection[int]], Mapping[int, int]]


class _Place(NamedTuple):
    """The jobs of one account that may start in the same partitions.

    Attributes:
        jobs: one by one.
        since: when each began to count.
        processors: that all tasks of each one ask for.
    """

    jobs: list[PendingJob]
    since: list[int]
    processors: list[int]

    def counting(self, tasks_of: Mapping[int, int]) -> CountingJobs | None:
        """Returns what counts of them, if anything does.

        Args:
            tasks_of: job id -> how many of its tasks count, where not all do that wait.
        """
        if not tasks_of:
            return CountingJobs(len(self.jobs), sum(self.processors), min(self.since))
        tasks = [tasks_of.get(job.job_id, job.tasks) for job in self.jobs]
        since = list(compress(self.since, tasks))
        if not since:
            return None
        processors = sum(map(mul, tasks, map(attrgetter("processors"), self.jobs)))
        return CountingJobs(len(since), processors, min(since))


@dataclass(frozen=True, slots=True)
class Demand:
    """The pending jobs as a cycle found them.

    Attributes:
        pending: all that wait.
        jobs: those of them that count.
        later: job id -> second from which it counts, where that is not when it became eligible.
        tasks: job id -> how many of its tasks count, where not all do that wait.
        places: account and partitions, as Slurm lists them -> what counts of the jobs there.
        news: what is other than on record.
        rooms: where they may start.
    """

    pending: Sequence[PendingJob] = ()
    jobs: Sequence[PendingJob] = ()
    later: Mapping[int, int] = field(default_factory=dict)
    tasks: Mapping[int, int] = field(default_factory=dict)
    places: Mapping[tuple[str, str], CountingJobs] = field(default_factory=dict)
    news: Sequence[KeptBack] = ()
    rooms: Rooms = field(default_factory=lambda: Rooms({}, {}))

    def after(
        self, pending: Sequence[PendingJob], known: Mapping[int, KeptBack], scene: Scene
    ) -> Demand:
        """Returns the demand of the next cycle.

        Args:
            pending: all that wait then.
            known: what is on record then, by job id.
            scene: what else decides.
        """
        jobs: list[PendingJob] = []
        at: defaultdict[tuple[str, str], _Place] = defaultdict(lambda: _Place([], [], []))
        later: dict[int, int] = {}
        news: dict[int, KeptBack] = {}
        t, width = scene.t, scene.rooms.width
        for job in pending:
            since = job.eligible
            if since is None or since > t:
                continue
            row = known.get(job.job_id)
            if job.reason not in ITS_TURN or job.processors > width(job.partition):
                if row is None or row.kept_since is None:
                    earlier = None if row is None else row.counts_since
                    news[job.job_id] = KeptBack(
                        job_id=job.job_id, counts_since=earlier, kept_since=t
                    )
                continue
            jobs.append(job)
            if row is not None:
                if row.kept_since is None:
                    since = max(since, row.counts_since or 0)
                else:
                    since = t
                    news[job.job_id] = _restarted(job.job_id, t)
                later[job.job_id] = since
            here, since_here, processors_here = at[job.account, job.partition]
            here.append(job)
            since_here.append(since)
            processors_here.append(job.tasks * job.processors)
        for job_id in self._pass_over(at, scene):
            later[job_id] = t
            news[job_id] = _restarted(job_id, t)
        tasks = _tasks_of_throttled(jobs, scene)
        places = {names: found for names, place in at.items() if (found := place.counting(tasks))}
        return Demand(pending, jobs, later, tasks, places, list(news.values()), scene.rooms)

    def counting(self) -> dict[int, Counted]:
        """Returns job id -> what counts of it; the others do not count."""
        return {
            job.job_id: Counted(
                self.later.get(job.job_id) or job.eligible or 0,
                self.tasks.get(job.job_id, job.tasks),
                self.rooms.widest(job.partition),
            )
            for job in self.jobs
        }

    def _pass_over(self, at: Mapping[tuple[str, str], _Place], scene: Scene) -> Iterator[int]:
        """Restarts and yields jobs behind which their own organization puts one that started.

        A job of lower priority that starts before them is backfilled, and delays no other.
        """
        queues = self._started_by_priority(scene)
        for (account, names), place in at.items() if queues else ():
            organization = scene.organization_of(account, names)
            here = [queues.get((organization, room), ((), ())) for room in scene.rooms.of(names)]
            newest = max((latest[-1] for _, latest in here if latest), default=0)
            if newest <= min(place.since):
                continue  # none that started could have done so later
            for number, since in enumerate(place.since):
                if newest <= since:
                    continue
                job = place.jobs[number]
                own = scene.own_priority(job)
                for falling, latest in here:
                    higher = bisect_left(falling, -own)
                    if higher and latest[higher - 1] > since:
                        place.since[number] = scene.t
                        yield job.job_id
                        break

    def _started_by_priority(
        self, scene: Scene
    ) -> Mapping[tuple[str, str], tuple[Sequence[int], Sequence[int]]]:
        """Returns what has started of the jobs that waited, by organization and room.

        Returns:
            negative priorities, the highest first, and the latest second since which any of the
            jobs up to there could have started.
        """
        started = {number for run in scene.started for number in (run.key.job_id, run.array_job_id)}
        waited = {job.job_id: job for job in self.pending if job.job_id in started}
        found: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for run in scene.started:
            job = waited.get(run.key.job_id) or waited.get(run.array_job_id)
            if job is None or not job.priority:
                continue
            for room in scene.rooms.of(job.partition):
                place = scene.organization_of(job.account, job.partition), room
                found[place].append((-scene.own_priority(job), run.release))
        return {
            place: (
                [falling for falling, _ in sorted(jobs)],
                list(accumulate((release for _, release in sorted(jobs)), max)),
            )
            for place, jobs in found.items()
        }


def _restarted(job_id: int, t: int) -> KeptBack:
    return KeptBack(job_id=job_id, counts_since=t, kept_since=None)


def _tasks_of_throttled(jobs: Iterable[PendingJob], scene: Scene) -> dict[int, int]:
    """Returns for parts of arrays how many of their tasks may start beside those that run."""
    throttled = [job for job in jobs if job.at_once is not None]
    arrays = {job.array_job_id for job in throttled}
    running = scene.running_tasks(arrays) if arrays else {}
    return {
        job.job_id: min(job.tasks, max((job.at_once or 0) - running.get(job.array_job_id, 0), 0))
        for job in throttled
    }


def _connected(partitions: Iterable[Partition]) -> dict[str, str]:
    """Returns partition -> one that stands for all that are connected by shared nodes."""
    room: dict[str, str] = {}
    members: dict[str, list[str]] = {}
    of_node: dict[str, str] = {}
    for partition in partitions:
        room[partition.name] = partition.name
        members[partition.name] = [partition.name]
        for other in {room[of_node[node]] for node in partition.nodes if node in of_node}:
            for name in members.pop(other):
                room[name] = partition.name
                members[partition.name].append(name)
        of_node.update(dict.fromkeys(partition.nodes, partition.name))
    return room
