"""The demo without Slurm: the same cycles, in this process, on the simulated cluster."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import structlog

from shapleyprio.common.wording import DAY
from shapleyprio.config import Config
from shapleyprio.daemon.estimation.live import LiveEstimates
from shapleyprio.daemon.estimation.worker import WORKER, EstimationWorker
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.fairness.runs import JobRecord
from shapleyprio.lab.demo.consortium import (
    CLUSTER,
    CPUS_PER_NODE,
    MEMBERS,
    POLL_SECONDS,
    Submission,
)
from shapleyprio.lab.demo.stage import DemoJob
from shapleyprio.lab.simulated import SimulatedSlurm, SimulatedSpec
from shapleyprio.slurm.layout import PrioritySettings
from shapleyprio.store import ClusterStore

SETTINGS = PrioritySettings(
    type="priority/multifactor",
    weights={"Age": 1000},
    flags=frozenset(),
    calc_period_seconds=60,
    max_age_seconds=DAY,
    site_factor_plugin="",
)
"""Those of the private Slurm."""


class SimulatedStage:
    """Time jumps from one cycle to the next.

    Args:
        config: of the demo.
        store: where the cycles keep everything.
        submissions: to come.
        log: file for what the daemon would log.
        pause_seconds: real seconds between two cycles, for people to see them.
    """

    def __init__(
        self,
        config: Config,
        store: ClusterStore,
        submissions: Iterable[Submission],
        *,
        log: Path,
        pause_seconds: float,
    ) -> None:
        self.began = int(time.time())
        self.slurm = _cluster(now=self.began)
        self.submitted = _announce(self.slurm, submissions)
        self._estimates = LiveEstimates(
            store,
            EstimationWorker(config.store.url, CLUSTER, WORKER),
            Metrics(CLUSTER),
            # an hour of this cluster passes while a worker starts
            patience=config.estimation.time_limit,
        )
        self._cycle = Cycle(
            config,
            self.slurm,
            store,
            clock=lambda: self.slurm.now,
            estimates=self._estimates,
        )
        self._pause_seconds = pause_seconds
        self._logging = structlog.get_config()
        self.log = log
        self._output = log.open("w", encoding="utf-8")
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(self._output))

    def step(self) -> int:
        """Runs a cycle, then advances the time to the next."""
        self._cycle.run()
        time.sleep(self._pause_seconds)
        self.slurm.advance(self.slurm.now + POLL_SECONDS)
        return self.slurm.now - self.began

    def stop_daemon(self) -> None:
        """Runs the last cycle."""
        self._cycle.run()

    def stop(self) -> list[str]:
        """Ends what estimates contributions."""
        self._estimates.stop()
        structlog.configure(**self._logging)
        self._output.close()
        return []


def first_come_first_served(submissions: Iterable[Submission], duration: int) -> list[DemoJob]:
    """Runs the same jobs without us: nothing is ever written."""
    slurm = _cluster(now=0)
    submitted = _announce(slurm, submissions)
    slurm.advance(duration)
    starts = {
        record.job_id: record.start
        for record in slurm.records(0, duration)
        if isinstance(record, JobRecord)
    }
    return [
        DemoJob(account=job.account, submit=job.second, start=starts.get(job_id))
        for job_id, job in submitted.items()
        if job.second < duration
    ]


def _cluster(now: int) -> SimulatedSlurm:
    partitions = {member.name: member.nodes for member in MEMBERS}
    nodes = [node for member in MEMBERS for node in member.nodes]
    return SimulatedSlurm(
        SimulatedSpec(
            cluster=CLUSTER,
            nodes=dict.fromkeys(nodes, CPUS_PER_NODE),
            partitions={**partitions, "all": nodes},
            accounts=dict.fromkeys(partitions),
            settings=SETTINGS,
        ),
        now=now,
    )


def _announce(slurm: SimulatedSlurm, submissions: Iterable[Submission]) -> dict[int, Submission]:
    """Announces every job for its second; returns their ids."""
    return {
        slurm.submit(
            job.account,
            processing_time=job.seconds,
            processors=job.processors,
            at=slurm.now + job.second,
        ): job
        for job in submissions
    }
