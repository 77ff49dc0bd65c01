"""Schedules of which a moment is looked at, and what really came after it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from shapleyprio.replay.engine.keys import Ints
from shapleyprio.replay.engine.schedule import Schedule
from shapleyprio.replay.engine.state import NEVER
from shapleyprio.replay.forecasts.futures import Columns, ReleasedJobs
from shapleyprio.replay.workloads.choices import Backfill
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, Log
from shapleyprio.replay.workloads.workload import Consortium, Workload, jobs_of
from tests.replay.strategies import Job, workload_of_jobs, workloads
from tests.replay.test_bays import in_bays

BACKFILLS: st.SearchStrategy[Backfill] = st.sampled_from(["none", "easy"])

NOTHING = Columns(*(np.zeros(0, dtype=np.int64) for _ in Columns._fields))
NO_PAST = ReleasedJobs(NOTHING, 0)


@st.composite
def whole_jobs(draw: st.DrawFn) -> Workload:
    """Workloads of whole jobs, of which no chance decides whose processors they get."""
    drawn = draw(workloads(wide="rigid", backfills=BACKFILLS, jobs=30))
    return replace(drawn, placement="least-loaded")


@st.composite
def in_partitions(draw: st.DrawFn) -> Workload:
    """Such workloads of jobs that only get processors of their partitions, which overlap."""
    workload = draw(in_bays(whole_jobs(), horizons=False))
    bays = workload.bays
    assert bays is not None
    fits = np.flatnonzero(workload.processors <= bays.processors[bays.partition])
    assume(len(fits))
    return jobs_of(workload, fits)


def rigid(owned: list[int], jobs: list[Job]) -> Workload:
    """Whole jobs with backfilling, in a window of an hour."""
    return workload_of_jobs(owned, jobs, 3600, wide="rigid", backfill="easy")


def starts_of(workload: Workload, schedule: Schedule) -> Ints:
    """When each job starts; NEVER if not in the window."""
    starts = np.full(len(workload.job), NEVER, dtype=np.int64)
    starts[schedule.job] = schedule.start
    return starts


def there_at(workload: Workload, starts: Ints, t: int) -> Ints:
    """The jobs that run or wait at a moment."""
    ends = np.where(starts == NEVER, NEVER, starts + workload.processing_time)
    return np.flatnonzero((workload.release <= t) & (ends > t))


def released_after(workload: Workload, t: int) -> Columns:
    """What is really released later."""
    jobs = np.flatnonzero(workload.release > t)
    bays = workload.bays
    return Columns(
        release=workload.release[jobs],
        organization=workload.organization[jobs].astype(np.int64),
        processors=workload.processors[jobs],
        limit=workload.limit[jobs],
        user=np.full(len(jobs), UNKNOWN, dtype=np.int64),
        processing_time=workload.processing_time[jobs],
        position=workload.position[jobs],
        partition=0 * jobs if bays is None else bays.partition[jobs].astype(np.int64),
    )


def log_of(jobs: list[Job], users: list[int]) -> Log:
    """A log whose jobs started at their releases, each with its user's code."""
    names = tuple(f"user{code}" for code in range(max(users) + 1))
    release = np.array([job.release for job in jobs], dtype=np.int64)
    return Log(
        source="jobs.log",
        format="swf",
        job=np.arange(len(jobs), dtype=np.int64),
        release=release,
        start=release,
        processing_time=np.array([job.processing_time for job in jobs], dtype=np.int64),
        processors=np.array([job.processors for job in jobs], dtype=np.int64),
        limit=np.array([job.limit for job in jobs], dtype=np.int64),
        labels={"user": Labels(np.array(users, dtype=np.int32), names)},
    )


def consortium_of(jobs: list[Job], owned: list[int]) -> Consortium:
    """Whose the jobs of a log are."""
    return Consortium(
        organizations=tuple(f"org{u}" for u in range(len(owned))),
        owned=np.array(owned, dtype=np.int64),
        organization=np.array([job.organization for job in jobs], dtype=np.int32),
    )
