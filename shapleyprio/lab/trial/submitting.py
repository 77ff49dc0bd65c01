"""Submits the jobs of a workload when they are due."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.machine import TestbedError, program
from shapleyprio.lab.trial.arms import Arm
from shapleyprio.lab.trial.plan import ClusterPlan

CHECK_SECONDS = 0.1

REFUSED = "Batch job submission failed: "
AWAY = ("Socket timed out", "Unable to contact", "Zero Bytes", "Connection refused")
"""slurmctld has not refused a job where it did not answer."""

LARGEST_ARRAY = 1000
"""Slurm's own limit, unless MaxArraySize says otherwise, is 1,001."""


def script(seconds: Sequence[int]) -> str:
    """Returns what every task of an array runs, each for its own time."""
    return f"set -- {' '.join(map(str, seconds))}\n" + (
        f'shift "$SLURM_ARRAY_TASK_ID"\nexec {program("sleep")} "$1"'
    )


class Submitter:
    """One thread for each organization, which keeps its jobs in their order.

    All that are due with the same options come as one array of jobs: as users submit the copies of
    one job, and because one call for each of a hundred jobs would take too much of the cluster's
    time.

    Args:
        cluster: running.
        plan: the workload, and how it is put on the cluster.
        arm: under which they run.
        begin: second of the cluster's clock at which the window begins.

    Attributes:
        submitted: what Slurm knows the workload's jobs as.
        refused: why jobs were refused -> how many.
        clock: the cluster's.
        begin: as given.
    """

    def __init__(self, cluster: PrivateSlurm, plan: ClusterPlan, arm: Arm, begin: int) -> None:
        self.submitted: dict[int, Sequence[int]] = {}
        self.refused = Counter[str]()
        workload = plan.workload
        self._cluster = cluster
        self._workload = workload
        self.clock = cluster.clock
        self.begin = begin
        self._stopped = threading.Event()
        self._failure: TestbedError | None = None
        self._options = [plan.options(job, arm) for job in range(len(workload.job))]
        self._threads = []
        for u in range(len(workload.organizations)):
            jobs = np.flatnonzero(workload.organization == u).tolist()
            self._threads.append(threading.Thread(target=self._submit, args=(jobs,)))

    @contextmanager
    def submitting(self) -> Iterator[None]:
        """Submits meanwhile; at the end it waits for all that is due, unless there is an error."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        except BaseException:
            self._stopped.set()
            raise
        finally:
            for thread in self._threads:
                thread.join()

    def second(self) -> float:
        """Returns the second of the window on the cluster's clock; negative before it begins."""
        return self.clock.now() - self.begin

    @property
    def count(self) -> int:
        """How many of the workload's jobs have been submitted."""
        return sum(map(len, list(self.submitted.values())))

    def check(self) -> None:
        """Raises what kept a job from being submitted.

        Raises:
            TestbedError: there was something.
        """
        if self._failure is not None:
            raise self._failure

    def _submit(self, jobs: list[int]) -> None:
        seconds = self._workload.processing_time
        begun = 0
        while begun < len(jobs):
            while (left := self.clock.real_seconds_until(self._due(jobs[begun]))) > 0:
                if self._stopped.wait(min(left, CHECK_SECONDS)):
                    return
            now, end = self.clock.now(), begun
            options = self._options[jobs[begun]]
            while (
                end < min(len(jobs), begun + LARGEST_ARRAY)
                and self._due(jobs[end]) <= now
                and self._options[jobs[end]] == options
            ):
                end += 1
            if self._stopped.is_set():
                return
            tasks = jobs[begun:end]
            try:
                array = self._sbatch([int(seconds[job]) for job in tasks], options)
                self.submitted[array] = tasks
            except TestbedError as error:
                reason = refusal(str(error))
                if reason is None:
                    self._failure = error
                    return
                self.refused[reason] += len(tasks)
            begun = end

    def _due(self, job: int) -> float:
        """Returns when to submit a job, on the cluster's clock."""
        return self.begin + int(self._workload.release[job])

    def _sbatch(self, seconds: list[int], options: tuple[str, ...]) -> int:
        """Submits a job, or an array of jobs whose tasks last as long as each should."""
        with self.clock.slow():
            answer = self._cluster.run(
                *("sbatch", "--parsable", "--output=/dev/null"),
                *(f"--array=0-{len(seconds) - 1}", *options),
                f"--wrap={script(seconds)}",
            )
        return int(answer.split(";")[0])


def refusal(message: str) -> str | None:
    """Returns why slurmctld refused a job; None if it did not.

    >>> refusal("sbatch: error: Batch job submission failed: Requested node configuration is not")
    'Requested node configuration is not'
    >>> refusal("sbatch: error: Batch job submission failed: Socket timed out on send/recv")
    """
    _, found, reason = message.partition(REFUSED)
    return reason.strip() if found and not reason.startswith(AWAY) else None
