"""The cost of points at submission: sbatch without and with slurmctld's Lua script."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from shapleyprio.common.wording import DAY
from shapleyprio.lab.bench.measure import Measurement, of_runs, seconds_of
from shapleyprio.lab.bench.slurm.queue import NODES, Queue
from shapleyprio.lab.testbed.submission import give_points_at_submission
from shapleyprio.slurm.points_table import PointsTable, remove_table, write_table

SUBMISSIONS = 1_000
ACCOUNTS = 1_000
"""Number of accounts in the table."""

POINTS = 100_000
CANCELLED_AT_ONCE = 500
_SUBMITTED = re.compile(r"submit_batch_job: JobId=(\d+) .*usec=(\d+)")


def submissions(queue: Queue, progress: Callable[[int], None]) -> Iterator[Measurement]:
    """Measures seconds of sbatch, and those that slurmctld needs to answer it.

    Args:
        queue: in which other jobs wait; the new ones are cancelled in the end, the script stays.
        progress: called with how many are submitted, of three times `SUBMISSIONS`.
    """
    yield from _block(queue, "without the script", progress)
    give_points_at_submission(queue.cluster, queue.table)
    write_table(queue.table, _table())
    what = f"with the script and a table of {ACCOUNTS:,} accounts"
    yield from _block(queue, what, lambda done: progress(SUBMISSIONS + done))
    remove_table(queue.table)
    what = "with the script, but no table"
    yield from _block(queue, what, lambda done: progress(2 * SUBMISSIONS + done))


def _block(queue: Queue, what: str, progress: Callable[[int], None]) -> Iterator[Measurement]:
    jobs: list[int] = []
    seconds = []
    for number in range(1, SUBMISSIONS + 1):
        seconds.append(seconds_of(lambda: jobs.append(queue.submit(len(jobs)))))
        progress(number)
    for begin in range(0, len(jobs), CANCELLED_AT_ONCE):
        queue.cluster.run("scancel", *map(str, jobs[begin : begin + CANCELLED_AT_ONCE]))
    yield of_runs("slurm", f"sbatch {what}", [1000 * one for one in seconds], unit="ms")
    spent = _spent(queue)
    milliseconds = [spent[job] / 1000 for job in jobs if job in spent]
    yield of_runs("slurm", f"sbatch {what}: slurmctld's part", milliseconds, unit="ms")


def _spent(queue: Queue) -> dict[int, int]:
    """Returns job -> microseconds in which slurmctld answered its submission, from its log."""
    log = queue.cluster.directory / "log" / "slurmctld.log"
    found = _SUBMITTED.findall(log.read_text(encoding="utf-8", errors="replace"))
    return {int(job): int(microseconds) for job, microseconds in found}


def _table() -> PointsTable:
    others = [f"account{number}" for number in range(ACCOUNTS - len(NODES))]
    points = dict.fromkeys([*others, *NODES], POINTS)
    return PointsTable(written=int(time.time()), lasts=DAY, points=points)
