"""Small logs with some contention, for reports."""

from __future__ import annotations

from pathlib import Path

from shapleyprio.config import Organization
from shapleyprio.replay import (
    Log,
    Window,
    Workload,
    consortium_of,
    read_log,
    run_policy,
    workload_of,
)
from shapleyprio.replay.results import Result, results_of

NAMES = ("physics", "biology", "a </script> & co")
JOBS = [(n, n // 2, n % 3 + 1, 3 + n * 7 % 11, 1 + n % 2) for n in range(1, 61)]
"""(job, submit, user, run time, processors)."""

LENGTH = 60


def log_in(directory: Path) -> Log:
    """A log of three users."""
    file = directory / "small.swf"
    file.write_text(
        "".join(
            f"{job} {submit} 2 {seconds} {processors} -1 -1 -1 -1 -1 1 {user} 1 -1 1 -1 -1 -1\n"
            for job, submit, user, seconds, processors in JOBS
        )
    )
    return read_log(str(file))


def workload_in(log: Log, *, length: int = LENGTH) -> Workload:
    """Its workload, on six processors."""
    organizations = [
        Organization(name=name, users=(str(user),), processors=user)
        for user, name in enumerate(NAMES, start=1)
    ]
    window = Window(start=0, length=length)
    return workload_of(log, consortium_of(log, organizations), window=window)


def results_in(workload: Workload, *policies: str) -> tuple[Result, ...]:
    """Returns the results of some policies."""
    return results_of(workload, [run_policy(workload, policy) for policy in policies])
