"""The daemon's costs to a real Slurm: seconds, calls, and how soon new jobs are served."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from shapleyprio.lab.bench.measure import MakeBar, Measurement, of_runs, seconds_of
from shapleyprio.lab.bench.slurm.adapters import adapters
from shapleyprio.lab.bench.slurm.queue import MOST_SUBMITTED, Cycles, Queue, full_queue
from shapleyprio.lab.bench.slurm.reaction import JOBS, first_looks, reactions
from shapleyprio.lab.bench.slurm.rpcs import STATISTICS, Calls, Counting, usual
from shapleyprio.lab.testbed.errors import TestbedError
from shapleyprio.lab.testbed.submission import give_points_at_submission
from shapleyprio.slurm import points_table
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import SlurmError

RUNS = 3
RUNS_ON_LONG_QUEUE = 1
"""Number of runs of each kind where more than `MOST_SUBMITTED` wait: one takes a minute there."""


def slurm(
    folder: Path,
    pending: int,
    channels: Sequence[str],
    poll_intervals: Sequence[int],
    bar: MakeBar,
) -> Iterator[Measurement]:
    """Measures on a private real Slurm, on this machine's clock.

    Args:
        folder: for the whole state.
        pending: how many jobs wait.
        channels: to write through; they take their turns in the order of `CHANNELS`.
        poll_intervals: seconds of the daemon from cycle to cycle, to see how soon new jobs get
            their priority; with the channels qos and association, and with the table of points,
            they have it at submission, which is measured without a daemon.
        bar: makes progress bars.

    Raises:
        SlurmUnavailableHere: this machine cannot have a private Slurm.
        SlurmError: it can, but something did not work.
    """
    with _queue(folder, pending, bar) as queue:
        counting = Counting(queue.cluster)
        for channel in (channel for channel in CHANNELS if channel in channels):
            yield from _cost(queue, channel, counting, bar)
            if CHANNELS[channel].per_job:
                yield from _reactions(queue, channel, poll_intervals, bar)
        if points_table.CHANNEL in channels:
            yield from _at_submission(queue, bar)


def slurm_adapters(
    folder: Path, pending: int, names: Sequence[str], bar: MakeBar
) -> Iterator[Measurement]:
    """Measures adapters beside each other on a private real Slurm.

    Args:
        folder: for the whole state.
        pending: how many jobs wait.
        names: of the adapters.
        bar: makes progress bars.

    Raises:
        SlurmUnavailableHere: this machine cannot have a private Slurm.
        SlurmError: it can, but something did not work.
    """
    with _queue(folder, pending, bar) as queue:
        yield from adapters(queue, names, bar)


@contextmanager
def _queue(folder: Path, pending: int, bar: MakeBar) -> Iterator[Queue]:
    try:
        with full_queue(folder / "slurm", pending, bar("submitting", pending)) as queue:
            yield queue
    except TestbedError as error:
        raise SlurmError(f"the private Slurm: {error}") from error


def _cost(queue: Queue, channel: str, counting: Counting, bar: MakeBar) -> Iterator[Measurement]:
    runs = RUNS if queue.pending <= MOST_SUBMITTED else RUNS_ON_LONG_QUEUE
    done = bar(f"{channel}: cycles", 1 + runs)
    with queue.cycles(channel) as cycles:
        done(1)
        yield from _first(queue, channel, cycles)
        of_all = f" of {cycles.writes:,}" if cycles.writes_at_once < cycles.writes else ""
        kinds = {
            f"a cycle over {queue.pending:,} pending jobs, order unchanged": cycles.unchanged,
            f"every organization changes rank: {cycles.writes_at_once:,}{of_all} writes": (
                cycles.changed
            ),
        }
        counted: dict[str, list[tuple[Calls, float]]] = {what: [] for what in kinds}
        for run in range(1, runs + 1):
            for what, cycle in kinds.items():
                counted[what].append(_counted(counting, cycle))
            cycles.finish()
            done(1 + run)
        for what, found in counted.items():
            whole = f"{channel} ({queue.version}): {what}"
            yield of_runs("slurm", whole, [seconds for _, seconds in found], unit="s")
            for daemon in STATISTICS:
                yield _calls_of(f"{channel}, that cycle", daemon, [all_ for all_, _ in found])
        if not CHANNELS[channel].per_job:
            yield from _first_looks(queue, f"channel {channel}", cycles, bar)
            cycles.put_back()


def _first(queue: Queue, channel: str, cycles: Cycles) -> Iterator[Measurement]:
    """Yields how long the first cycles took, if one was not enough."""
    count = len(cycles.first_seconds)
    if count > 1:
        what = f"{channel} ({queue.version}): the first {count} cycles, until all jobs are served"
        yield of_runs("slurm", what, [sum(cycles.first_seconds)], unit="s")


def _counted(counting: Counting, cycle: Callable[[], object]) -> tuple[Calls, float]:
    taken: list[float] = []
    calls = counting.during(lambda: taken.append(seconds_of(cycle)))
    return calls, taken[0]


def _calls_of(what: str, daemon: str, runs: Sequence[Calls]) -> Measurement:
    typical = usual([run[daemon] for run in runs])
    types = ", ".join(f"{count:,} {message}" for message, count in typical.most_common())
    whole = f"{what}: calls to {daemon}{types and f' ({types})'}"
    totals = [run[daemon].total() for run in runs]
    return replace(of_runs("slurm", whole, totals, unit="calls"), value=typical.total())


def _reactions(
    queue: Queue, channel: str, poll_intervals: Sequence[int], bar: MakeBar
) -> Iterator[Measurement]:
    for poll_seconds in poll_intervals:
        done = bar(f"{channel}: new jobs", JOBS)
        seconds = reactions(queue, channel, poll_seconds, done)
        what = f"{channel}: from submission to priority, polling every {poll_seconds} s"
        yield of_runs("slurm", what, seconds, unit="s")


def _at_submission(queue: Queue, bar: MakeBar) -> Iterator[Measurement]:
    """Measures how soon a new job has the points of a table, by slurmctld's Lua script."""
    give_points_at_submission(queue.cluster, queue.table)
    with queue.cycles(points_table.CHANNEL, queue.table) as cycles:
        yield from _first_looks(queue, "table of points", cycles, bar)


def _first_looks(queue: Queue, way: str, cycles: Cycles, bar: MakeBar) -> Iterator[Measurement]:
    looks = first_looks(queue, cycles, bar(f"{way}: new jobs", JOBS))
    what = f"{way}: from submission to priority, no daemon running"
    yield of_runs("slurm", what, looks.late, unit="s")
    milliseconds = [1000 * seconds for seconds in looks.seconds]
    what = f"{way}: sbatch and the first look at the new job"
    yield of_runs("slurm", what, milliseconds, unit="ms")
