"""Simulates a log by Lapis; run by a Python that has it, and nothing of ours.

``python peer_lapis.py LOG PROCESSORS fcfs FOLDER`` reads a log in SWF. All processors are those of
one drone, since a job of Lapis never has several. Its own scheduler starts once a minute whatever
fits; Lapis lets one give another, so the one here is first come, first served. Which job started
when is written into FOLDER/sched-NAME.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lapis.job import Job
from lapis.job_io.swf import swf_job_reader
from lapis.monitor import Monitoring
from lapis.pool import StaticPool
from lapis.scheduler import CondorJobScheduler
from lapis.simulator import Simulator
from usim import Lock, Tracked, instant


class FirstInFirstOut(CondorJobScheduler):  # type: ignore[misc]  # its package is not here
    """Starts the first job of the queue as soon as it fits."""

    def __init__(self, job_queue: Any) -> None:
        super().__init__(job_queue)
        self._unfinished = Tracked(0)
        self._turn = Lock()

    async def run(self) -> None:
        """Takes jobs in, until all have ended."""
        async for job in self._stream_queue:
            self.job_queue.append(job)
            await self._unfinished.set(self._unfinished.value + 1)
            await self._start()
        await (self._unfinished == 0)

    async def job_finished(self, job: Job) -> None:
        """Goes on when a job has given its processors back."""
        assert job.successful
        await self._unfinished.set(self._unfinished.value - 1)
        await self._start()

    async def _start(self) -> None:
        async with self._turn:  # jobs end and arrive at the same second
            while self.job_queue and (drone := self._schedule_job(self.job_queue[0])):
                job = self.job_queue.pop(0)
                await drone.schedule_job(job)
                while job.in_queue_until is None:
                    await instant


def main(log: str, processors: int, folder: Path) -> None:
    """Simulates the whole log."""
    jobs = []

    def read(lines: Iterable[str]) -> Iterator[Job]:
        for job in swf_job_reader(lines):
            for asked in (job.resources, job.used_resources):
                del asked["memory"]  # the log says none, and Lapis divides by it
            jobs.append(job)
            yield job

    def pool(iterable: int, pool_type: type, make_drone: Any) -> Iterator[Any]:
        yield pool_type(capacity=1, make_drone=partial(make_drone, {"cores": iterable}))

    simulator = Simulator()
    simulator.monitoring = Monitoring()  # of nothing
    simulator.create_scheduler(FirstInFirstOut)
    simulator.create_pools(processors, pool, StaticPool)
    with Path(log).open(encoding="utf-8") as lines:
        simulator.create_job_generator(lines, read)
        simulator.run()
    starts = "".join(f"{job.name};{job.in_queue_until:.0f}\n" for job in jobs)
    (folder / f"sched-{Path(log).name}").write_text(starts, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[4]))
