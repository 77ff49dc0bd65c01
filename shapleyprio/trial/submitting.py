"""Submits the jobs of a workload when they are due."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

import numpy as np

from shapleyprio.replay.workload import Workload
from shapleyprio.slurm.port import Channel
from shapleyprio.testbed.cluster import PrivateSlurm
from shapleyprio.testbed.configuration import EVERYTHING
from shapleyprio.testbed.errors import TestbedError
from shapleyprio.testbed.packages import program
from shapleyprio.trial.arms import Arm
from shapleyprio.trial.clock import ClusterClock
from shapleyprio.trial.plan import limit_minutes, members_of

LATE_SECONDS = 0.5
"""Of the cluster's clock, so that an error in comparing clocks submits no job too early."""

LOOK_SECONDS = 0.1


class Submitter:
    """One thread for each organization, which keeps its jobs in their order.

    Args:
        cluster: running.
        workload: jobs of one processor each.
        arm: under which they run.
        clock: the cluster's.
        begin: second of the cluster's clock at which the window begins.

    Attributes:
        job_ids: Slurm's number of a job -> its index in the workload.
    """

    def __init__(
        self, cluster: PrivateSlurm, workload: Workload, arm: Arm, clock: ClusterClock, begin: int
    ) -> None:
        self.job_ids: dict[int, int] = {}
        self._cluster = cluster
        self._workload = workload
        self._clock = clock
        self._begin = begin
        self._stopped = threading.Event()
        self._failure: TestbedError | None = None
        self._limit = f"--time={limit_minutes(workload)}"
        self._threads = []
        for u, member in enumerate(members_of(workload)):
            options = [f"--account={member.handle}"]
            options += [f"--qos={member.handle}"] if arm.channel is Channel.QOS else []
            jobs = np.flatnonzero(workload.organization == u).tolist()
            self._threads.append(threading.Thread(target=self._submit, args=(jobs, options)))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        """Raises what kept a job from being submitted.

        Raises:
            TestbedError: there was something.
        """
        if self._failure is not None:
            raise self._failure

    def _submit(self, jobs: list[int], options: list[str]) -> None:
        release, seconds = self._workload.release, self._workload.processing_time
        for job in jobs:
            due = self._begin + int(release[job]) + LATE_SECONDS
            while not self._stopped.is_set() and (left := self._clock.real_seconds_until(due)) > 0:
                self._stopped.wait(min(left, LOOK_SECONDS))
            if self._stopped.is_set():
                return
            try:
                self.job_ids[self._sbatch(int(seconds[job]), options)] = job
            except TestbedError as error:
                self._failure = error
                return

    def _sbatch(self, seconds: int, options: list[str]) -> int:
        answer = self._cluster.run(
            *("sbatch", "--parsable", "--ntasks=1", f"--partition={EVERYTHING}", self._limit),
            *("--output=/dev/null", *options, f"--wrap=exec {program('sleep')} {seconds}"),
        )
        return int(answer.split(";")[0])
