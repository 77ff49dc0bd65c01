"""The workloads that are replayed: made up, the same on every machine, or from real logs."""

from __future__ import annotations

import gzip
from itertools import repeat
from pathlib import Path
from random import Random

import numpy as np

from shapleyprio.common.wording import DAY
from shapleyprio.replay.workloads.dealing import deal, processor_shares
from shapleyprio.replay.workloads.log import UNKNOWN, Log
from shapleyprio.replay.workloads.workload import Window, Workload, whole_log, workload_of

JOBS = 3_000
PROCESSORS = 70
SECONDS = 50_000
LOAD = 1.3
"""So much work is released as all processors could do in 1.3 windows."""

SEED = 1

MONTH = 30 * DAY


def made_up(organizations: int, *, seed: int = SEED) -> Workload:
    """Makes a full system: sequential jobs of organizations with processors by Zipf's law.

    Releases are uniform in the window, each job is anybody's with equal chances, and processing
    times are exponential.
    """
    random = Random(seed)  # noqa: S311  # the same numbers every time is what is wanted
    mean = LOAD * PROCESSORS * SECONDS / JOBS
    jobs = sorted(
        (
            int(random.random() * SECONDS),
            int(random.random() * organizations),
            max(1, int(random.expovariate(1 / mean))),
        )
        for _ in range(JOBS)
    )
    release, organization, processing_time = np.array(jobs, dtype=np.int64).T
    order = np.argsort(organization, kind="stable")
    unknown = np.full(JOBS, UNKNOWN, dtype=np.int64)
    return Workload(
        organizations=tuple(f"organization{number + 1}" for number in range(organizations)),
        owned=np.array(
            processor_shares(organizations, shares="zipf", processors=PROCESSORS), dtype=np.int64
        ),
        window=Window(start=0, length=SECONDS),
        job=order + 1,
        organization=organization[order].astype(np.int32),
        release=release[order],
        processing_time=processing_time[order],
        processors=np.ones(JOBS, dtype=np.int64),
        limit=unknown,
        start=unknown,
        position=order,
    )


def write_swf(workload: Workload, file: Path) -> None:
    """Writes sequential jobs as a log in which each organization is a user."""
    columns = (workload.release, workload.job, workload.processing_time, workload.organization)
    with file.open("w") as log:
        log.write(f"; MaxProcs: {PROCESSORS}\n")
        for release, job, seconds, user in sorted(np.column_stack(columns).tolist()):
            log.write(f"{job} {release} -1 {seconds} 1 -1 -1 1 -1 -1 1 {user}{6 * ' -1'}\n")


def dealt_out(
    log: Log, organizations: int, *, processors: int, window: Window | None = None
) -> Workload:
    """Returns the jobs of a log, or of a window of it, with users and so many processors dealt."""
    consortium = deal(log, organizations, shares="zipf", processors=processors, seed=SEED)
    return workload_of(log, consortium, window=window, wide="expand")


def month_of(log: Log, day: int, organizations: int, *, processors: int) -> Workload:
    """Returns the jobs of 30 days of a log from that day on, dealt out as all of them are."""
    begin = min(day * DAY, max(whole_log(log).length - MONTH, 0))
    window = Window(start=whole_log(log).start + begin, length=MONTH)
    return dealt_out(log, organizations, processors=processors, window=window)


def lines_of(file: Path) -> int:
    """Counts the lines of a file compressed by gzip."""
    with gzip.open(file) as lines:
        return sum(1 for _ in lines)


def repeated(file: Path, into: Path, at_least: int) -> int:
    """Writes the lines of a file compressed by gzip over and over.

    Returns:
        how many lines there are now.
    """
    with gzip.open(file) as compressed:
        text = compressed.read()
    lines = text.count(b"\n")
    times = -(-at_least // lines)
    with into.open("wb") as target:
        target.writelines(repeat(text, times))
    return lines * times
