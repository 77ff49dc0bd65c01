"""The cluster's accelerated clock, computed from ours."""

from __future__ import annotations

import time
from dataclasses import dataclass

from shapleyprio.lab.testbed.cluster import PrivateSlurm

SAMPLES = 7


@dataclass(frozen=True, slots=True)
class ClusterClock:
    """Two readings at one moment, from which the cluster's clock runs `speed` times ours.

    Attributes:
        ours, theirs: seconds since the epoch.
        speed: cluster seconds per real second.
    """

    ours: float
    theirs: float
    speed: int

    def now(self) -> float:
        """Returns the cluster's seconds since the epoch."""
        return self.theirs + (time.time() - self.ours) * self.speed

    def real_seconds_until(self, second: float) -> float:
        """Returns the real seconds until a second of the cluster's; negative if it has passed."""
        return (second - self.now()) / self.speed


def read_clock(cluster: PrivateSlurm) -> ClusterClock:
    """Compares the clocks; the quickest of some answers errs least."""
    answers = []
    for _ in range(SAMPLES):
        before = time.time()
        theirs = float(cluster.run("date", "+%s.%N"))
        after = time.time()
        answers.append((after - before, (before + after) / 2, theirs))
    _, ours, theirs = min(answers)
    return ClusterClock(ours=ours, theirs=theirs, speed=cluster.spec.speed)
