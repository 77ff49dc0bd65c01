"""An organization that becomes two members: what the measurement of it changes."""

from __future__ import annotations

import numpy as np

from shapleyprio.lab.bench.fairness.splitting import in_two, urgent_jobs
from tests.replay.strategies import Job, workload_of_jobs

WORKLOAD = workload_of_jobs([1, 1], [Job(0, 0, 90), Job(0, 5, 10), Job(1, 0, 50)], 200)


def test_the_shortest_jobs_with_a_tenth_of_the_work_are_urgent() -> None:
    assert np.flatnonzero(urgent_jobs(WORKLOAD, 0)).tolist() == [1]
    assert not urgent_jobs(WORKLOAD, 1).any()


def test_the_urgent_jobs_become_those_of_a_member_without_processors() -> None:
    split, order = in_two(WORKLOAD, urgent_jobs(WORKLOAD, 0))
    assert split.owned.tolist() == [1, 1, 0]
    assert split.organization.tolist() == [0, 1, 2]
    assert order.tolist() == [0, 2, 1]
    assert split.processing_time.tolist() == [90, 50, 10]
