"""The Multi-Organization Scheduling Problem: instances, schedules, and what bounds a makespan.

Pascual, Rzadca & Trystram, *Cooperation in multi-organization scheduling* (Euro-Par 2007),
section 2. All times are whole seconds, all bounds exact fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from shapleyprio.common.errors import ReplayError


class MospError(ReplayError):
    """Jobs and clusters do not make an instance; the message says what to change."""


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A rigid parallel job, released at 0.

    Attributes:
        organization: index of its owner, whose own cluster has the same index.
        processors: q, how many it needs at once, all on one cluster.
        processing_time: p, seconds, known beforehand.
    """

    organization: int
    processors: int
    processing_time: int


@dataclass(frozen=True, slots=True)
class Instance:
    """A batch of jobs of n organizations, each with a cluster of m processors.

    Attributes:
        organizations: n.
        processors: m, of each cluster.
        jobs: everybody's, at least one; each fits on a cluster. Their order decides nothing but
            last ties.
    """

    organizations: int
    processors: int
    jobs: tuple[BatchJob, ...]

    @property
    def work(self) -> int:
        """W, the surface of all jobs in processor-seconds."""
        return sum(job.processors * job.processing_time for job in self.jobs)

    @property
    def longest(self) -> int:
        """The longest processing time, p_max, in seconds."""
        return max(job.processing_time for job in self.jobs)

    @property
    def average_load(self) -> Fraction:
        """LB = W / (m·n) in seconds (section 4)."""
        return Fraction(self.work, self.processors * self.organizations)

    @property
    def optimum_bound(self) -> Fraction:
        """max(LB, p_max) in seconds: no schedule is shorter (proof of Proposition 4)."""
        return max(self.average_load, Fraction(self.longest))

    def is_high(self, job: BatchJob) -> bool:
        """Returns whether a job needs more than half a cluster; no two such run side by side."""
        return 2 * job.processors > self.processors

    def jobs_of(self, organization: int) -> list[int]:
        """Returns the indices of an organization's jobs."""
        return [index for index, job in enumerate(self.jobs) if job.organization == organization]


@dataclass(frozen=True, slots=True)
class BatchSchedule:
    """Where and when every job of an instance runs.

    Attributes:
        instance: whose jobs these are.
        cluster: for each job, the cluster it runs on.
        start: for each job, in seconds.
    """

    instance: Instance
    cluster: Sequence[int]
    start: Sequence[int]

    def completion(self, job: int) -> int:
        """Returns when a job, given by its index, completes."""
        return self.start[job] + self.instance.jobs[job].processing_time

    @property
    def makespan(self) -> int:
        """C_max: when the last job completes."""
        return max(self.makespans)

    @property
    def makespans(self) -> list[int]:
        """For each organization, when the last of its own jobs completes; 0 if it has none."""
        last = [0] * self.instance.organizations
        for index, job in enumerate(self.instance.jobs):
            last[job.organization] = max(last[job.organization], self.completion(index))
        return last

    @property
    def ends_low(self) -> bool:
        """Whether a job that completes last needs at most half a cluster."""
        last = self.makespan
        return any(
            not self.instance.is_high(job) and self.completion(index) == last
            for index, job in enumerate(self.instance.jobs)
        )
