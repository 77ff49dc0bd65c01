"""The cost of points at submission: sbatch without and with slurmctld's Lua script."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from shapleyprio.bench.measure import Measurement, of_runs, seconds_of
from shapleyprio.bench.slurm_queue import DAY, NODES, Queue
from shapleyprio.slurm.points_table import PointsTable, remove_table, write_table
from shapleyprio.testbed.submission import give_points_at_submission

SUBMISSIONS = 1_000
ACCOUNTS = 1_000
"""Number of accounts in the table."""

POINTS = 100_000
CANCELLED_AT_ONCE = 500
_SPENT = re.compile(r"REQUEST_SUBMIT_BATCH_JOB .*? count:(\d+) +ave_time:\d+ +total_time:(\d+)")


def submissions(queue: Queue, progress: Callable[[int], None]) -> Iterator[Measurement]:
    """Measures seconds of sbatch, and microseconds that slurmctld spends on each.

    Args:
        queue: in which other jobs wait; the new ones are cancelled in the end, the script stays.
        progress: called with how many are submitted, of three times `SUBMISSIONS`.
    """
    yield from _block(queue, "without the script", progress)
    file = queue.cluster.directory / "points"
    give_points_at_submission(queue.cluster, file)
    write_table(file, _table())
    what = f"with the script and a table of {ACCOUNTS:,} accounts"
    yield from _block(queue, what, lambda done: progress(SUBMISSIONS + done))
    remove_table(file)
    what = "with the script, but no table"
    yield from _block(queue, what, lambda done: progress(2 * SUBMISSIONS + done))


def _block(queue: Queue, what: str, progress: Callable[[int], None]) -> Iterator[Measurement]:
    jobs: list[int] = []
    seconds = []
    count, spent = _spent(queue)
    for number in range(1, SUBMISSIONS + 1):
        seconds.append(seconds_of(lambda: jobs.append(queue.submit(len(jobs)))))
        progress(number)
    count_after, spent_after = _spent(queue)
    for begin in range(0, len(jobs), CANCELLED_AT_ONCE):
        queue.cluster.run("scancel", *map(str, jobs[begin : begin + CANCELLED_AT_ONCE]))
    milliseconds = [1000 * one for one in seconds]
    yield of_runs("slurm", f"sbatch {what}", milliseconds, unit="ms")
    mean = (spent_after - spent) / max(count_after - count, 1)
    yield Measurement(
        name="slurm",
        what=f"sbatch {what}: slurmctld's part, on average",
        value=mean / 1000,
        unit="ms",
        runs=count_after - count,
        worst=mean / 1000,
    )


def _spent(queue: Queue) -> tuple[int, int]:
    """Returns how many submissions slurmctld has answered, and in how many microseconds."""
    found = _SPENT.search(queue.cluster.run("sdiag"))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _table() -> PointsTable:
    others = [f"account{number}" for number in range(ACCOUNTS - len(NODES))]
    points = dict.fromkeys([*others, *NODES], POINTS)
    return PointsTable(written=int(time.time()), lasts=DAY, points=points)
