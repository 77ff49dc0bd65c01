"""Runs arms, each from an empty directory to the records of its jobs, some beside each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from shapleyprio.fairness.runs import JobRecord, Run, run_of
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.processes import end_clients
from shapleyprio.lab.trial.arms import Arm
from shapleyprio.lab.trial.executed import Held, Submitted, records_by_job
from shapleyprio.lab.trial.plan import ClusterPlan
from shapleyprio.lab.trial.steering import (
    COMMAND_SECONDS,
    CycleCounts,
    Pace,
    StartErrors,
    TrialDaemon,
    errors_of,
    steering,
)
from shapleyprio.lab.trial.submitting import Submitter
from shapleyprio.replay.workloads.workload import Workload
from shapleyprio.slurm.adapters import connect
from shapleyprio.slurm.port import Connection, Slurm, SlurmError

CHECK_SECONDS = 0.2
HEAD_START_SECONDS = 1.0  # real ones, for the threads to be ready when the window begins
SETTLE_SECONDS = 2.0  # real ones, for the accounting to hear of the window's last moments
PATIENCE_SECONDS = 30.0  # real ones, for records that are late


class StoppedError(Exception):
    """The trial was asked to stop."""


@dataclass(slots=True)
class ArmProgress:
    """How far an arm is; its own thread writes, others read.

    Attributes:
        doing: in a word.
        second: of the window that was reached.
        submitted: how many jobs have been submitted.
        real_seconds: since the window began.
    """

    doing: str = "waiting"
    second: int = 0
    submitted: int = 0
    real_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What was seen of an arm.

    Attributes:
        arm: which.
        slurm_version: as `sinfo --version` prints it.
        begin: second of the cluster's clock at which the window began.
        submitted: what Slurm knows the workload's jobs as.
        refused: why jobs were refused -> how many.
        records: of these jobs, as accounting has them just after the window's end.
        held: of jobs on several nodes, as far as slurmctld says it.
        unreadable: how many lines of sacct could not be read.
        cycles: of the daemon; None where it did not run.
        start_errors: of its forecasts of starts; None likewise.
        real_seconds: from the first process to the last.
    """

    arm: Arm
    slurm_version: str
    begin: int
    submitted: Submitted
    refused: Mapping[str, int]
    records: Sequence[JobRecord]
    held: Held
    unreadable: int
    cycles: CycleCounts | None
    start_errors: StartErrors | None
    real_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What all arms of a trial have in common.

    Attributes:
        plan: the workload, and how it is put on the cluster.
        speed: cluster seconds per real second at most.
        pace: of the daemon.
    """

    plan: ClusterPlan
    speed: int
    pace: Pace

    @property
    def workload(self) -> Workload:
        """As Slurm runs it."""
        return self.plan.workload


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRun:
    """One arm of one trial.

    Attributes:
        name: of its directory; short, for UNIX sockets are below it.
        arm: how the workload is run.
        conditions: what is run.
        progress: how far it is.
    """

    name: str
    arm: Arm
    conditions: Conditions
    progress: ArmProgress = field(default_factory=ArmProgress)


def run_arm(run: ArmRun, directory: Path, stopped: threading.Event) -> Trace:
    """Boots a cluster, runs the workload under an arm, and stops everything.

    Args:
        run: the arm and the workload; its progress is kept up to date.
        directory: for the whole state, new or empty.
        stopped: once it is set, everything ends.

    Raises:
        StoppedError: `stopped` was set.
        SlurmError: something did not work; the message names the arm.
    """
    try:
        return _run(run, directory, stopped)
    except SlurmError as error:
        raise SlurmError(f"{run.arm.name}: {error}") from error
    finally:
        run.progress.doing = "stopped"


def _run(run: ArmRun, directory: Path, stopped: threading.Event) -> Trace:
    arm, conditions, progress = run.arm, run.conditions, run.progress
    plan, began = conditions.plan, time.monotonic()
    with ExitStack() as stack:
        progress.doing = "booting"
        cluster = stack.enter_context(_booted(run, directory, stopped))
        clock = cluster.clock
        daemon = None
        if arm.channel is not None:
            running = steering(cluster, plan, arm, conditions.pace)
            daemon = stack.enter_context(running)
        begin = int(clock.now() + HEAD_START_SECONDS * conditions.speed) + 1
        submitter = Submitter(cluster, plan, arm, begin)
        _let_pass(run, submitter, daemon, stopped)
        progress.doing = "reading"
        if daemon is not None:
            with clock.slow():  # or it would hardly wait for its running cycle
                daemon.end()
        slurm = connect(
            Connection(environment=cluster.environment, timeout_seconds=COMMAND_SECONDS)
        )
        records, unreadable = _records(slurm, submitter, stopped)
        held = slurm.processors_of(list(_on_several_nodes(records, plan.sizes)))
        version = cluster.run("sinfo", "--version").strip()
        progress.doing = "stopping"
        cycles = None if daemon is None else daemon.cycles()
        errors = None if daemon is None else errors_of(daemon.said, _starts(submitter, records))
    return Trace(
        arm=arm,
        slurm_version=version,
        begin=begin,
        submitted=submitter.submitted,
        refused=submitter.refused,
        records=records,
        held=held,
        unreadable=unreadable,
        cycles=cycles,
        start_errors=errors,
        real_seconds=time.monotonic() - began,
    )


@contextmanager
def _booted(run: ArmRun, directory: Path, stopped: threading.Event) -> Iterator[PrivateSlurm]:
    """Boots the cluster with its accounts; afterwards no process of it is left."""
    plan = run.conditions.plan
    cluster = PrivateSlurm(directory, plan.spec(run.arm, speed=run.conditions.speed))
    try:
        with cluster:
            _pause(stopped)
            plan.populate(cluster, run.arm)
            yield cluster
    finally:
        if left := end_clients(cluster.directory):
            raise SlurmError(f"could not be stopped: {', '.join(left)}")


def _let_pass(
    run: ArmRun, submitter: Submitter, daemon: TrialDaemon | None, stopped: threading.Event
) -> None:
    """Lets the window pass while jobs are submitted."""
    length, progress = run.conditions.workload.window.length, run.progress
    progress.doing, began = "running", time.monotonic()
    with submitter.submitting():
        while (second := submitter.second()) < length:
            progress.second, progress.submitted = max(0, int(second)), submitter.count
            progress.real_seconds = time.monotonic() - began
            submitter.check()
            if daemon is not None:
                daemon.check()
                daemon.note_forecasts()
            _pause(stopped)
    submitter.check()
    progress.second, progress.submitted = length, submitter.count


def _records(
    slurm: Slurm, submitter: Submitter, stopped: threading.Event
) -> tuple[list[JobRecord], int]:
    """Returns the records of all jobs, and how many lines could not be read."""
    submitted = submitter.submitted
    jobs = set(chain.from_iterable(submitted.values()))
    settled, patience = (time.monotonic() + s for s in (SETTLE_SECONDS, PATIENCE_SECONDS))
    while True:
        complete = slurm.controller().accounting_backlog == 0
        lines = list(slurm.records(submitter.begin, int(submitter.clock.now())))
        records = [record for record in lines if isinstance(record, JobRecord)]
        malformed = len(lines) - len(records)
        found = {job for job, _ in records_by_job(records, submitted)}
        unstarted = [number for number, own in submitted.items() if not found.issuperset(own)]
        records += [
            record
            for record in slurm.records_of(unstarted)
            if isinstance(record, JobRecord) and record.start is None
        ]
        complete &= {job for job, _ in records_by_job(records, submitted)} == jobs
        now = time.monotonic()
        if (complete and now > settled) or now > patience:
            return records, malformed
        _pause(stopped)


def _starts(submitter: Submitter, records: Sequence[JobRecord]) -> dict[int, int]:
    """Returns when jobs started that were submitted one by one: Slurm's number -> second."""
    numbers = {tasks[0]: number for number, tasks in submitter.submitted.items() if len(tasks) == 1}
    of_jobs = records_by_job(records, submitter.submitted)
    return {
        numbers[job]: record.start
        for job, record in of_jobs
        if record.start is not None and job in numbers
    }


def _on_several_nodes(records: Sequence[JobRecord], sizes: Mapping[str, int]) -> Iterator[Run]:
    for record in records:
        run = run_of(record, sizes)
        if run is not None and len(record.nodes) > 1:
            yield run


def _pause(stopped: threading.Event) -> None:
    if stopped.wait(CHECK_SECONDS):
        raise StoppedError


WATCH_SECONDS = 0.5


ArmsWatch = Callable[[Sequence[ArmRun]], None]
"""Called now and then; the runs' progress says how far each is."""

ArmFinished = Callable[[ArmRun, Trace], None]
"""Called when an arm has come to its end."""


def run_side_by_side(
    runs: Sequence[ArmRun],
    *,
    directory: Path,
    at_once: int,
    watch: ArmsWatch,
    finished: ArmFinished,
) -> None:
    """Runs each in a directory and on ports of its own.

    Args:
        runs: in the order in which they begin.
        directory: each one's is below it, under its name.
        at_once: how many run beside each other at most.
        watch: called now and then.
        finished: called after each that came to its end.

    Raises:
        SlurmError: an arm failed; the others were ended.
        KeyboardInterrupt, SystemExit: and all were ended.
    """
    stopped = threading.Event()
    with ThreadPoolExecutor(at_once) as pool:
        futures = {pool.submit(run_arm, run, directory / run.name, stopped): run for run in runs}
        waiting = set(futures)
        try:
            while waiting:
                done, waiting = wait(waiting, WATCH_SECONDS, FIRST_COMPLETED)
                for future in done:
                    finished(futures[future], future.result())
                watch(runs)
        finally:
            _end(futures, stopped)


def _end(futures: Collection[Future[Trace]], stopped: threading.Event) -> None:
    """Waits until each arm has cleared up after itself, whatever signals come meanwhile."""
    stopped.set()
    for future in futures:
        future.cancel()
    while not all(future.done() for future in futures):
        with suppress(KeyboardInterrupt, SystemExit):
            wait(futures)
