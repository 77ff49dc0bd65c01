"""The time that a new job waits for its priority."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from shapleyprio.lab.bench.slurm.queue import BASE_PRIORITY, Cycles, Queue
from shapleyprio.lab.testbed.errors import TestbedError

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
