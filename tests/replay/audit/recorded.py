"""Workloads whose recorded schedule is known, written down or drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from shapleyprio.replay.policies import run_policy
from shapleyprio.replay.workloads.log import Labels, RecordedProcessors
from shapleyprio.replay.workloads.workload import Workload
from tests.replay.strategies import Job, workload_of_jobs, workloads


def recorded(owned: Sequence[int], jobs: Sequence[tuple[Job, int, int]], length: int) -> Workload:
    """A workload of (job, recorded start, owner of the processor it got), sorted by job."""
    workload = workload_of_jobs(owned, [job for job, _, _ in jobs], length)
    order = workload.position
    return _with_starts(
        workload,
        np.array([start for _, start, _ in jobs])[order],
        np.array([owner for _, _, owner in jobs])[order],
    )


@st.composite
def recorded_workloads(draw: st.DrawFn) -> Workload:
    """Workloads of narrow jobs that ran first come, first served, on anybody's processors."""
    workload = draw(workloads(widths=st.just(1)))
    schedule = run_policy(workload, "fcfs", seed=draw(st.integers(0, 99)))
    start = np.full(len(workload.job), workload.window.length, dtype=np.int64)
    owner = np.zeros(len(workload.job), dtype=np.int64)
    start[schedule.job], owner[schedule.job] = schedule.start, schedule.owner
    nobodys = draw(st.sets(st.integers(0, len(owner) - 1)))
    owner[list(nobodys)] = -1
    return _with_starts(workload, start, owner)


def _with_starts(
    workload: Workload,
    start: np.ndarray[tuple[int], np.dtype[np.int64]],
    owner: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Workload:
    count = len(workload.job)
    return replace(
        workload,
        start=start.astype(np.int64),
        placed=RecordedProcessors(
            first=np.arange(count + 1),
            owners=Labels(owner.astype(np.int32), workload.organizations),
            processors=np.ones(count, dtype=np.int64),
        ),
    )
