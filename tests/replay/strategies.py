"""Small workloads to test policies with, drawn at random or written down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from shapleyprio.replay.workloads.choices import Backfill, Wide
from shapleyprio.replay.workloads.log import UNKNOWN, Labels, RecordedProcessors
from shapleyprio.replay.workloads.workload import Window, Workload

UP_TO_FOUR = st.integers(1, 4)
WINDOWS = st.integers(1, 30)
SHORT = st.integers(1, 6)
FEW = st.integers(0, 2)
WIDTHS = st.integers(1, 3)
NO_HORIZON = st.none()
HORIZONS = st.integers(1, 12)
NO_BACKFILL: st.SearchStrategy[Backfill] = st.just("none")


@dataclass(frozen=True, slots=True)
class Job:
    """A job as tests write it down."""

    organization: int
    release: int
    processing_time: int
    processors: int = 1
    limit: int = UNKNOWN


def workload_of_jobs(
    owned: Sequence[int],
    jobs: Iterable[Job],
    length: int,
    *,
    wide: Wide = "expand",
    backfill: Backfill = "none",
    horizon: int | None = None,
) -> Workload:
    """A workload of jobs in the log's order, numbered from 100 on."""
    logged = list(jobs)
    order = sorted(range(len(logged)), key=lambda i: (logged[i].organization, logged[i].release, i))
    taken = [logged[i] for i in order]
    return Workload(
        organizations=tuple(f"org{u}" for u in range(len(owned))),
        owned=np.array(owned, dtype=np.int64),
        window=Window(start=1_000_000, length=length),
        job=np.array(order, dtype=np.int64) + 100,
        organization=np.array([job.organization for job in taken], dtype=np.int32),
        release=np.array([job.release for job in taken], dtype=np.int64),
        processing_time=np.array([job.processing_time for job in taken], dtype=np.int64),
        processors=np.array([job.processors for job in taken], dtype=np.int64),
        limit=np.array([job.limit for job in taken], dtype=np.int64),
        start=np.full(len(taken), UNKNOWN, dtype=np.int64),
        position=np.array(order, dtype=np.int64),
        wide=wide,
        backfill=backfill,
        horizon=horizon,
    )


def jobs_of(workload: Workload) -> list[Job]:
    """The jobs of a workload, without their limits."""
    columns = (
        workload.organization,
        workload.release,
        workload.processing_time,
        workload.processors,
    )
    return [Job(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


@st.composite
def workloads(
    draw: st.DrawFn,
    *,
    organizations: st.SearchStrategy[int] = UP_TO_FOUR,
    lengths: st.SearchStrategy[int] = WINDOWS,
    jobs: int = 14,
    processing_times: st.SearchStrategy[int] = SHORT,
    owned: st.SearchStrategy[int] = FEW,
    widths: st.SearchStrategy[int] = WIDTHS,
    spread: int | None = None,
    wide: Wide = "expand",
    backfills: st.SearchStrategy[Backfill] = NO_BACKFILL,
    horizons: st.SearchStrategy[int | None] = NO_HORIZON,
) -> Workload:
    """Workloads with many ties; some organizations may have no processors or no jobs.

    Args:
        draw: given by Hypothesis.
        organizations: how many.
        lengths: of the window; jobs may be cut by its end.
        jobs: at most so many.
        processing_times: of jobs.
        owned: processors of each organization; the first gets one if all are 0.
        widths: processors of jobs.
        spread: releases lie before that second; None for anywhere in the window.
        wide: what becomes of wide jobs.
        backfills: what may pass a rigid job that does not fit.
        horizons: age from which a part gains no more worth.
    """
    k = draw(organizations)
    shares = draw(st.lists(owned, min_size=k, max_size=k))
    if not any(shares):
        shares[0] = 1
    length = draw(lengths)
    last = min(length, spread or length) - 1
    widest = sum(shares) if wide == "rigid" else None
    drawn = st.builds(
        _job,
        st.integers(0, k - 1),
        st.integers(0, last),
        processing_times,
        widths.map(lambda width: min(width, widest or width)),
        st.none() | st.integers(0, 5),
    )
    count = draw(st.integers(1, jobs))
    return workload_of_jobs(
        shares,
        draw(st.lists(drawn, min_size=count, max_size=count)),
        length,
        wide=wide,
        backfill=draw(backfills),
        horizon=draw(horizons),
    )


def _job(
    organization: int, release: int, processing_time: int, processors: int, margin: int | None
) -> Job:
    limit = UNKNOWN if margin is None else processing_time + margin - 1
    return Job(organization, release, processing_time, processors, limit)


@st.composite
def placed(draw: st.DrawFn, drawn: st.SearchStrategy[Workload]) -> Workload:
    """Workloads whose jobs really got processors of owners, known or not, some of one twice."""
    workload = draw(drawn)
    owners = st.integers(UNKNOWN, len(workload.organizations) - 1)
    parts = st.lists(st.tuples(owners, st.integers(1, 3)), max_size=3)
    of_jobs = [draw(parts) for _ in workload.job]
    flat = [part for of_job in of_jobs for part in of_job]
    really_got = RecordedProcessors(
        first=np.cumsum([0, *map(len, of_jobs)], dtype=np.int64),
        owners=Labels(
            np.array([owner for owner, _ in flat], dtype=np.int32), workload.organizations
        ),
        processors=np.array([count for _, count in flat], dtype=np.int64),
    )
    return replace(workload, placed=really_got, placement="recorded")
