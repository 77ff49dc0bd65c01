"""How long a new job waits for its priority."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from random import Random

from shapleyprio.bench.slurm_queue import Queue
from shapleyprio.slurm.port import Channel
from shapleyprio.testbed.errors import TestbedError

JOBS = 30
INTERVALS = 2
"""Over so many intervals the submissions are spread."""

SHORTEST_SECONDS = 30.0
LOOK_SECONDS = 0.2
PATIENCE_SECONDS = 120.0

SHOWS = {
    Channel.SITE_FACTOR: ("sprio", "-h", "-o", "%i %S"),
    Channel.NICE: ("squeue", "-h", "-o", "%A %y"),
}
"""Channel -> what tells job and value, which is 0 before the daemon writes."""

_WRITTEN = re.compile(r"^\s*(\d+)\s+(-?[1-9]\d*)\s*$", re.MULTILINE)


def reactions(
    queue: Queue, channel: Channel, poll_seconds: int, progress: Callable[[int], None]
) -> list[float]:
    """Seconds from before each of `JOBS` submissions until its priority is seen in Slurm.

    Args:
        queue: in which other jobs wait; the new ones are cancelled in the end.
        channel: of `SHOWS`.
        poll_seconds: from one cycle of the daemon to the next.
        progress: told how many jobs have their priority.

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
            for job in _written(queue, channel, submitted.keys() - seconds.keys()):
                seconds[job] = time.monotonic() - submitted[job]
            progress(len(seconds))
            daemon.check()
            if time.monotonic() > last:
                raise TestbedError(f"{JOBS - len(seconds)} jobs do not get their priority")
            time.sleep(LOOK_SECONDS)
    queue.cluster.run("scancel", *map(str, submitted))
    return list(seconds.values())


def _written(queue: Queue, channel: Channel, jobs: Iterable[int]) -> list[int]:
    """Those of the jobs that the daemon has written to."""
    wanted = ",".join(map(str, jobs))
    if not wanted:
        return []
    told = queue.cluster.run(*SHOWS[channel], "-j", wanted)
    return [int(job) for job, _ in _WRITTEN.findall(told)]
