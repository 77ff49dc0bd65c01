"""The time that a new job waits for its priority."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from random import Random

from shapleyprio.bench.slurm_queue import COMMAND_SECONDS, Queue
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.command_line import CommandLineSlurm
from shapleyprio.slurm.commands import SlurmCommands
from shapleyprio.slurm.port import Connection
from shapleyprio.testbed.cluster import PrivateSlurm
from shapleyprio.testbed.errors import TestbedError

JOBS = 30
INTERVALS = 2
"""Number of intervals over which the submissions are spread."""

SHORTEST_SECONDS = 30.0
CHECK_SECONDS = 0.2
PATIENCE_SECONDS = 120.0


class _JobCommands(SlurmCommands):
    """Commands that list some jobs only.

    Args:
        cluster: running.
        jobs: ids, at least one.
    """

    def __init__(self, cluster: PrivateSlurm, jobs: Iterable[int]) -> None:
        super().__init__(environment=cluster.environment, timeout_seconds=COMMAND_SECONDS)
        self._jobs = ",".join(map(str, jobs))

    def lines(self, program: str, *arguments: str) -> Iterator[str]:
        """Runs squeue or sprio and yields the lines of the jobs."""
        return super().lines(program, *arguments, "-j", self._jobs)


class _JobsOnly(CommandLineSlurm):
    """A cluster of whose queue only some jobs are read: to read all would slow what is measured."""

    def __init__(self, cluster: PrivateSlurm, jobs: Iterable[int]) -> None:
        super().__init__(Connection(environment=cluster.environment))
        self._commands = _JobCommands(cluster, jobs)


def reactions(
    queue: Queue, channel: str, poll_seconds: int, progress: Callable[[int], None]
) -> list[float]:
    """Measures seconds from before each of `JOBS` submissions until Slurm shows its priority.

    Args:
        queue: in which other jobs wait; the new ones are cancelled in the end.
        channel: one that writes to every job; what it writes is 0 before the daemon does.
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
            for job in _written(queue, channel, submitted.keys() - seconds.keys()):
                seconds[job] = time.monotonic() - submitted[job]
            progress(len(seconds))
            daemon.check()
            if time.monotonic() > last:
                raise TestbedError(f"{JOBS - len(seconds)} jobs do not get their priority")
            time.sleep(CHECK_SECONDS)
    queue.cluster.run("scancel", *map(str, submitted))
    return list(seconds.values())


def _written(queue: Queue, channel: str, jobs: Collection[int]) -> list[int]:
    """Returns those of the jobs that the daemon has written to."""
    if not jobs:
        return []
    only = _JobsOnly(queue.cluster, jobs)
    values = CHANNELS[channel].values(only, [str(job) for job in jobs]).by_target
    return [job for job in jobs if values.get(str(job))]
