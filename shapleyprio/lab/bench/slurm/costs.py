"""The daemon's costs to a real Slurm: seconds, calls, and how soon new jobs are served."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import median_low

from shapleyprio.lab.bench.measure import BenchParameters, MakeBar, Measurement, of_runs, seconds_of
from shapleyprio.lab.bench.slurm.adapters import adapters
from shapleyprio.lab.bench.slurm.queue import (
    BASE_PRIORITY,
    MOST_SUBMITTED,
    Cycles,
    Queue,
    full_queue,
)
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.machine import TestbedError
from shapleyprio.lab.testbed.steering import give_points_at_submission
from shapleyprio.slurm import points_table
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import SlurmError

STATISTICS = {"slurmctld": ("sdiag",), "slurmdbd": ("sacctmgr", "show", "stats")}
"""Daemon -> the command that prints its statistics."""

_BY_TYPE = re.compile(
    r"^Remote Procedure Call statistics by message type\n((?:\t.*\n)*)", re.MULTILINE
)
_COUNT = re.compile(r"^\t(\w+)\s+\(\s*\d+\)\s+count:(\d+)", re.MULTILINE)

Calls = Mapping[str, Counter[str]]
"""Daemon -> type of message -> how many."""


def calls_by_type(statistics: str) -> Counter[str]:
    r"""Counts the messages of each type in a daemon's statistics.

    >>> calls_by_type(
    ...     "Remote Procedure Call statistics by message type\n"
    ...     "\tREQUEST_PING                            ( 1008) count:2      ave_time:416\n"
    ...     "\nRemote Procedure Call statistics by user\n"
    ...     "\troot            (       0) count:23     ave_time:398\n"
    ... )
    Counter({'REQUEST_PING': 2})
    """
    section = _BY_TYPE.search(statistics)
    counts = _COUNT.findall(section[1]) if section else []
    return Counter({message: int(count) for message, count in counts})


class Counting:
    """Counts what is asked of the daemons of a cluster.

    Args:
        cluster: on which nothing happens while this is made.
    """

    def __init__(self, cluster: PrivateSlurm) -> None:
        self._cluster = cluster
        first, second, third = (self._read() for _ in range(3))
        # what is there each time is the cost of reading the statistics
        self._own = {
            daemon: (second[daemon] - first[daemon]) & (third[daemon] - second[daemon])
            for daemon in STATISTICS
        }

    def during(self, action: Callable[[], object]) -> Calls:
        """Returns the calls from an action's beginning to its end, whoever made them."""
        before = self._read()
        action()
        after = self._read()
        return {daemon: after[daemon] - before[daemon] - self._own[daemon] for daemon in STATISTICS}

    def _read(self) -> Calls:
        return {
            daemon: calls_by_type(self._cluster.run(*command))
            for daemon, command in STATISTICS.items()
        }


def usual(runs: Sequence[Counter[str]]) -> Counter[str]:
    """Returns the median of each type, so that what nodes report now and then does not count.

    >>> usual([Counter(ping=2), Counter(ping=2, registration=1), Counter(ping=3)])
    Counter({'ping': 2})
    """
    types = {message: None for run in runs for message in run}
    medians = {message: median_low(run[message] for run in runs) for message in types}
    return +Counter(medians)


JOBS = 30
INTERVALS = 2
"""Number of intervals over which the submissions are spread."""

SHORTEST_SECONDS = 30.0
CHECK_SECONDS = 0.2
PATIENCE_SECONDS = 120.0


def reactions(
    queue: Queue, channel: str, poll_seconds: int, progress: Callable[[int], None]
) -> list[float]:
    """Measures seconds from before each of `JOBS` submissions until Slurm shows its priority.

    Args:
        queue: in which other jobs wait; the new ones are cancelled in the end.
        channel: one that writes to every job.
        poll_seconds: from one cycle of the daemon to the next.
        progress: called with how many jobs have their priority.

    Raises:
        TestbedError: the daemon has ended.
        TestbedError: a job does not get its priority.
    """
    length = max(INTERVALS * poll_seconds, SHORTEST_SECONDS)
    random = Random(poll_seconds)  # noqa: S311 - moments, not secrets
    with queue.daemon(channel, poll_seconds) as daemon:
        begin = time.monotonic()
        last = begin + length + INTERVALS * poll_seconds + PATIENCE_SECONDS
        due = sorted(begin + random.uniform(0, length) for _ in range(JOBS))
        submitted: dict[int, float] = {}
        seconds: dict[int, float] = {}
        while len(seconds) < JOBS:
            while len(submitted) < JOBS and due[len(submitted)] <= time.monotonic():
                now = time.monotonic()
                submitted[queue.submit(len(submitted))] = now
            for job in submitted.keys() - seconds.keys():
                if _priority(queue, job) > BASE_PRIORITY:
                    seconds[job] = time.monotonic() - submitted[job]
            progress(len(seconds))
            daemon.check()
            if time.monotonic() > last:
                raise TestbedError(f"{JOBS - len(seconds)} jobs do not get their priority")
            time.sleep(CHECK_SECONDS)
    queue.cluster.run("scancel", *map(str, submitted))
    return list(seconds.values())


@dataclass(frozen=True, slots=True)
class FirstLooks:
    """What was seen of jobs right after their submission.

    Attributes:
        seconds: of sbatch and the first look at the job.
        late: seconds from the end of sbatch until a look showed the right priority; 0 where the
            first one did.
    """

    seconds: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)


def first_looks(queue: Queue, cycles: Cycles, progress: Callable[[int], None]) -> FirstLooks:
    """Submits `JOBS` jobs that Slurm itself gives their priority, and looks at each at once.

    No daemon runs meanwhile, so no one else can.

    Args:
        queue: in which other jobs wait; the new ones are cancelled in the end.
        cycles: of the way in which Slurm knows what organizations are to have.
        progress: called with how many jobs were looked at.

    Raises:
        TestbedError: a job does not get its priority.
    """
    looks = FirstLooks()
    jobs = []
    for number in range(JOBS):
        due = BASE_PRIORITY + cycles.points[queue.account(number)]
        began = time.monotonic()
        jobs.append(queue.submit(number))
        submitted = time.monotonic()
        found = _priority(queue, jobs[-1])
        looks.seconds.append(time.monotonic() - began)
        right = found == due
        while found != due:
            if time.monotonic() > submitted + PATIENCE_SECONDS:
                raise TestbedError(f"job {jobs[-1]} has priority {found} instead of {due}")
            time.sleep(CHECK_SECONDS)
            found = _priority(queue, jobs[-1])
        looks.late.append(0.0 if right else time.monotonic() - submitted)
        progress(number + 1)
    queue.cluster.run("scancel", *map(str, jobs))
    return looks


def _priority(queue: Queue, job: int) -> int:
    """Returns a job's priority; for a single job Slurm does not look at the whole queue."""
    return int(queue.cluster.run("squeue", "-h", "-j", str(job), "-o", "%Q"))


RUNS = 3
RUNS_ON_LONG_QUEUE = 1
"""Number of runs of each kind where more than `MOST_SUBMITTED` wait: one takes a minute there."""


def measure_slurm(asked: BenchParameters) -> Iterator[Measurement]:
    """Measures on a private real Slurm, on this machine's clock: adapters, or channels.

    Channels take their turns in the order of `CHANNELS`. With qos and association, and with the
    table of points, new jobs have their priority at submission, which is measured without a daemon.

    Raises:
        SlurmUnavailableHere: this machine cannot have a private Slurm.
        SlurmError: it can, but something did not work.
    """
    directory, pending, bar = asked.folder / "slurm", asked.pending, asked.bar
    try:
        with full_queue(directory, pending, bar("submitting", pending)) as queue:
            if asked.adapters:
                yield from adapters(queue, asked.adapters, bar)
            else:
                yield from _channels(queue, asked)
    except TestbedError as error:
        raise SlurmError(f"the private Slurm: {error}") from error


def _channels(queue: Queue, asked: BenchParameters) -> Iterator[Measurement]:
    counting = Counting(queue.cluster)
    channels = [name for name in CHANNELS if name in asked.channels or not asked.channels]
    for channel in channels:
        yield from _cost(queue, channel, counting, asked.bar)
        if CHANNELS[channel].per_job:
            yield from _reactions(queue, channel, asked.poll_intervals, asked.bar)
    if points_table.CHANNEL in channels:
        yield from _at_submission(queue, asked.bar)


def _cost(queue: Queue, channel: str, counting: Counting, bar: MakeBar) -> Iterator[Measurement]:
    runs = RUNS if queue.pending <= MOST_SUBMITTED else RUNS_ON_LONG_QUEUE
    done = bar(f"{channel}: cycles", 1 + runs)
    with queue.cycles(channel) as cycles:
        done(1)
        yield from _first(queue, channel, cycles)
        of_all = f" of {cycles.writes:,}" if cycles.writes_at_once < cycles.writes else ""
        kinds = {
            f"a cycle over {queue.pending:,} pending jobs, order unchanged": cycles.unchanged,
            f"every organization changes rank: {cycles.writes_at_once:,}{of_all} writes": (
                cycles.changed
            ),
        }
        counted: dict[str, list[tuple[Calls, float]]] = {what: [] for what in kinds}
        for run in range(1, runs + 1):
            for what, cycle in kinds.items():
                counted[what].append(_counted(counting, cycle))
            cycles.finish()
            done(1 + run)
        for what, found in counted.items():
            whole = f"{channel} ({queue.version}): {what}"
            yield of_runs("slurm", whole, [seconds for _, seconds in found], unit="s")
            for daemon in STATISTICS:
                yield _calls_of(f"{channel}, that cycle", daemon, [all_ for all_, _ in found])
        if not CHANNELS[channel].per_job:
            yield from _first_looks(queue, f"channel {channel}", cycles, bar)
            cycles.put_back()


def _first(queue: Queue, channel: str, cycles: Cycles) -> Iterator[Measurement]:
    """Yields how long the first cycles took, if one was not enough."""
    count = len(cycles.first_seconds)
    if count > 1:
        what = f"{channel} ({queue.version}): the first {count} cycles, until all jobs are served"
        yield of_runs("slurm", what, [sum(cycles.first_seconds)], unit="s")


def _counted(counting: Counting, cycle: Callable[[], object]) -> tuple[Calls, float]:
    taken: list[float] = []
    calls = counting.during(lambda: taken.append(seconds_of(cycle)))
    return calls, taken[0]


def _calls_of(what: str, daemon: str, runs: Sequence[Calls]) -> Measurement:
    typical = usual([run[daemon] for run in runs])
    types = ", ".join(f"{count:,} {message}" for message, count in typical.most_common())
    whole = f"{what}: calls to {daemon}{types and f' ({types})'}"
    totals = [run[daemon].total() for run in runs]
    return replace(of_runs("slurm", whole, totals, unit="calls"), value=typical.total())


def _reactions(
    queue: Queue, channel: str, poll_intervals: Sequence[int], bar: MakeBar
) -> Iterator[Measurement]:
    for poll_seconds in poll_intervals:
        done = bar(f"{channel}: new jobs", JOBS)
        seconds = reactions(queue, channel, poll_seconds, done)
        what = f"{channel}: from submission to priority, polling every {poll_seconds} s"
        yield of_runs("slurm", what, seconds, unit="s")


def _at_submission(queue: Queue, bar: MakeBar) -> Iterator[Measurement]:
    """Measures how soon a new job has the points of a table, by slurmctld's Lua script."""
    give_points_at_submission(queue.cluster, queue.table)
    with queue.cycles(points_table.CHANNEL, queue.table) as cycles:
        yield from _first_looks(queue, "table of points", cycles, bar)


def _first_looks(queue: Queue, way: str, cycles: Cycles, bar: MakeBar) -> Iterator[Measurement]:
    looks = first_looks(queue, cycles, bar(f"{way}: new jobs", JOBS))
    what = f"{way}: from submission to priority, no daemon running"
    yield of_runs("slurm", what, looks.late, unit="s")
    milliseconds = [1000 * seconds for seconds in looks.seconds]
    what = f"{way}: sbatch and the first look at the new job"
    yield of_runs("slurm", what, milliseconds, unit="ms")
