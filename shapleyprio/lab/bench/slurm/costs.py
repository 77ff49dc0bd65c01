"""The daemon's costs to a real Slurm: calls, answer times, and how soon new jobs are served."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

from shapleyprio.daemon.steering.report import CycleReport
from shapleyprio.lab.bench.measure import MakeBar, Measurement, of_runs, seconds_of
from shapleyprio.lab.bench.slurm import submission as slurm_submission
from shapleyprio.lab.bench.slurm.adapters import adapters
from shapleyprio.lab.bench.slurm.probe import Answered, Stretch, probing
from shapleyprio.lab.bench.slurm.queue import MOST_SUBMITTED, TASKS, Cycles, Queue, full_queue
from shapleyprio.lab.bench.slurm.reaction import JOBS, first_looks, reactions
from shapleyprio.lab.bench.slurm.rpcs import STATISTICS, Calls, Counting, usual
from shapleyprio.lab.testbed.errors import SlurmUnavailableHere, TestbedError
from shapleyprio.lab.testbed.packages import ensure_installed
from shapleyprio.slurm import points_table
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import SlurmError, SlurmUnavailableError

RUNS = 5
COUNTED = 3
"""Number of runs without a probe, for calls and seconds."""

DISTINCT_RUNS = 3
MOST_RUNS_ON_LONG_QUEUE = 1
"""Number of runs of each kind where more than `MOST_SUBMITTED` wait: one takes a minute there."""

MOST_DISTINCT = 10_000
"""Number of jobs that get as many values."""

NOTHING_SECONDS = 3.0
"""For so long nothing happens before each run with a probe."""


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
        SlurmUnavailableError: this machine cannot have a private Slurm.
        SlurmError: it can, but something did not work.
    """
    with _queue(folder, pending, bar) as queue:
        yield from _reading(queue, bar)
        counting = Counting(queue.cluster)
        for channel in (channel for channel in CHANNELS if channel in channels):
            yield from _cost(queue, channel, counting, bar)
            if CHANNELS[channel].per_job:
                yield from _distinct(queue, channel, bar)
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
        SlurmUnavailableError: this machine cannot have a private Slurm.
        SlurmError: it can, but something did not work.
    """
    with _queue(folder, pending, bar) as queue:
        yield from adapters(queue, names, bar)


@contextmanager
def _queue(folder: Path, pending: int, bar: MakeBar) -> Iterator[Queue]:
    try:
        with full_queue(folder / "slurm", pending, bar("submitting", pending)) as queue:
            yield queue
    except SlurmUnavailableHere as reason:
        raise SlurmUnavailableError(str(reason)) from reason
    except TestbedError as error:
        raise SlurmError(f"the private Slurm: {error}") from error


def install(say: Callable[[str], None]) -> None:
    """Makes sure that there is a Slurm to boot.

    Args:
        say: called with a line that names what is about to be installed.

    Raises:
        SlurmUnavailableError: there cannot be one here.
    """
    try:
        ensure_installed(say)
    except SlurmUnavailableHere as reason:
        raise SlurmUnavailableError(str(reason)) from reason


def _reading(queue: Queue, bar: MakeBar) -> Iterator[Measurement]:
    """Measures how long it takes to read who waits, without and with a long array."""
    runs = _runs(queue, RUNS)
    done = bar("reading the queue", 2 * runs)
    what = f"reading {queue.pending:,} pending jobs ({queue.version})"
    seconds = []
    for run in range(1, runs + 1):
        seconds.append(seconds_of(queue.slurm.pending))
        done(run)
    yield of_runs("slurm", what, seconds, unit="s")
    seconds = []
    with queue.array():
        for run in range(1, runs + 1):
            seconds.append(seconds_of(queue.slurm.pending))
            done(runs + run)
    yield of_runs("slurm", f"{what} and an array of {TASKS:,} tasks", seconds, unit="s")


def _runs(queue: Queue, usual_runs: int) -> int:
    return (
        usual_runs if queue.pending <= MOST_SUBMITTED else min(usual_runs, MOST_RUNS_ON_LONG_QUEUE)
    )


def _cost(queue: Queue, channel: str, counting: Counting, bar: MakeBar) -> Iterator[Measurement]:
    counted_runs, probed_runs = _runs(queue, COUNTED), _runs(queue, RUNS)
    done = bar(f"{channel}: cycles", 1 + counted_runs + probed_runs)
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
        for run in range(1, counted_runs + 1):
            for what, cycle in kinds.items():
                counted[what].append(_counted(counting, cycle))
            cycles.finish()
            done(1 + run)
        for what, runs in counted.items():
            whole = f"{channel} ({queue.version}): {what}"
            yield of_runs("slurm", whole, [seconds for _, seconds in runs], unit="s")
            for daemon in STATISTICS:
                yield _calls_of(f"{channel}, that cycle", daemon, [all_ for all_, _ in runs])
        measured = _probed(queue, cycles, probed_runs, lambda run: done(1 + counted_runs + run))
        if not CHANNELS[channel].per_job:
            yield from _first_looks(queue, f"channel {channel}", cycles, bar)
            cycles.put_back()
    stretches, answers, phases = measured
    for phase, seconds in phases.items():
        yield of_runs("slurm", f"{channel}, that cycle: {phase}", seconds, unit="s")
    for what, them in stretches.items():
        meanwhile = [
            answer.seconds for answer in answers if any(part.holds(answer) for part in them)
        ]
        yield from _answer_times(f"{channel}: squeue -j ID {what}", meanwhile)


def _first(queue: Queue, channel: str, cycles: Cycles) -> Iterator[Measurement]:
    """Yields how long the first cycles took, if one was not enough."""
    count = len(cycles.first_seconds)
    if count > 1:
        what = f"{channel} ({queue.version}): the first {count} cycles, until all jobs are served"
        yield Measurement(
            name="slurm",
            what=what,
            value=sum(cycles.first_seconds),
            unit="s",
            worst=sum(cycles.first_seconds),
        )


def _counted(counting: Counting, cycle: Callable[[], object]) -> tuple[Calls, float]:
    taken: list[float] = []
    calls = counting.during(lambda: taken.append(seconds_of(cycle)))
    return calls, taken[0]


def _calls_of(what: str, daemon: str, runs: Sequence[Calls]) -> Measurement:
    typical = usual([run[daemon] for run in runs])
    types = ", ".join(f"{count:,} {message}" for message, count in typical.most_common())
    return Measurement(
        name="slurm",
        what=f"{what}: calls to {daemon}{types and f' ({types})'}",
        value=typical.total(),
        unit="calls",
        runs=len(runs),
        worst=max(run[daemon].total() for run in runs),
    )


def _probed(
    queue: Queue, cycles: Cycles, runs: int, progress: Callable[[int], None]
) -> tuple[dict[str, list[Stretch]], list[Answered], dict[str, list[float]]]:
    """Returns stretches of time by what happened, all answers, and seconds of each phase."""
    nothing, unchanged, pushes = "while nothing happens", "during a quiet cycle", "during a push"
    phases: dict[str, list[float]] = defaultdict(list)
    stretches: dict[str, list[Stretch]] = {nothing: [], unchanged: [], pushes: []}
    with probing(queue.cluster, queue.first_job) as probe:
        for run in range(1, runs + 1):
            began = time.monotonic()
            time.sleep(NOTHING_SECONDS)
            stretches[nothing].append(Stretch(began, time.monotonic()))
            began = time.monotonic()
            cycles.unchanged()
            stretches[unchanged].append(Stretch(began, time.monotonic()))
            report = cycles.changed()
            ended = time.monotonic()
            stretches[pushes].append(Stretch(ended - report.seconds["push"], ended))
            for phase, seconds in _phases(report, cycles.seconds_writing).items():
                phases[phase].append(seconds)
            cycles.finish()
            progress(run)
    return stretches, probe.answers(), phases


def _phases(report: CycleReport, writing: float) -> dict[str, float]:
    rest = report.seconds["push"] - writing
    return {
        **{phase: report.seconds[phase] for phase in ("account", "observe", "rank")},
        "write": writing,
        "keep on record and read back": rest,
    }


def _distinct(queue: Queue, channel: str, bar: MakeBar) -> Iterator[Measurement]:
    """Measures writes of as many values as jobs, and how soon Slurm answers meanwhile."""
    runs = _runs(queue, DISTINCT_RUNS)
    done = bar(f"{channel}: distinct values", runs)
    jobs = queue.slurm.pending().jobs[:MOST_DISTINCT]
    found = {job.target: CHANNELS[channel].shown(job) for job in jobs}
    stretches, seconds = [], []
    with probing(queue.cluster, queue.first_job) as probe:
        for run in range(1, runs + 1):
            values = {target: run * MOST_DISTINCT + n for n, target in enumerate(found)}
            began = time.monotonic()
            refused = queue.slurm.write(channel, values)
            stretches.append(Stretch(began, time.monotonic()))
            if refused:
                raise SlurmError(
                    f"{len(refused)} writes were refused: {next(iter(refused.values()))}"
                )
            seconds.append(queue.slurm.seconds_writing)
            done(run)
    # else the next cycles would take them for set by hand
    queue.slurm.write(channel, {target: value or 0 for target, value in found.items()})
    what = f"{channel}: {len(found):,} jobs get as many values"
    yield of_runs("slurm", what, seconds, unit="s")
    answers = [
        answer.seconds
        for answer in probe.answers()
        if any(part.holds(answer) for part in stretches)
    ]
    yield from _answer_times(f"{channel}: squeue -j ID meanwhile", answers)


def _answer_times(what: str, seconds: Sequence[float]) -> Iterator[Measurement]:
    """Yields the median with the worst, and the 95th percentile; nothing without requests."""
    if not seconds:
        return
    milliseconds = [1000 * duration for duration in seconds]
    yield of_runs("slurm", what, milliseconds, unit="ms")
    few = len(milliseconds) < 2
    high = max(milliseconds) if few else quantiles(milliseconds, n=20, method="inclusive")[-1]
    yield Measurement(
        name="slurm",
        what=f"{what}, 95th percentile",
        value=high,
        unit="ms",
        runs=len(milliseconds),
        worst=max(milliseconds),
    )


def _reactions(
    queue: Queue, channel: str, poll_intervals: Sequence[int], bar: MakeBar
) -> Iterator[Measurement]:
    for poll_seconds in poll_intervals:
        done = bar(f"{channel}: new jobs", JOBS)
        seconds = reactions(queue, channel, poll_seconds, done)
        what = f"{channel}: from submission to priority, polling every {poll_seconds} s"
        yield of_runs("slurm", what, seconds, unit="s")


def _at_submission(queue: Queue, bar: MakeBar) -> Iterator[Measurement]:
    """Measures what slurmctld's Lua script costs, and what it makes of a table of the daemon's."""
    done = bar("submissions", 3 * slurm_submission.SUBMISSIONS)
    yield from slurm_submission.submissions(queue, done)
    with queue.cycles(points_table.CHANNEL, queue.table) as cycles:
        yield from _first_looks(queue, "table of points", cycles, bar)


def _first_looks(queue: Queue, way: str, cycles: Cycles, bar: MakeBar) -> Iterator[Measurement]:
    looks = first_looks(queue, cycles, bar(f"{way}: new jobs", JOBS))
    what = f"{way}: from submission to priority, no daemon running"
    yield of_runs("slurm", what, looks.late, unit="s")
    milliseconds = [1000 * seconds for seconds in looks.seconds]
    what = f"{way}: sbatch and the first look at the new job"
    yield of_runs("slurm", what, milliseconds, unit="ms")
