"""Runs one arm, from an empty directory to the records of its jobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from shapleyprio.fairness.runs import JobRecord
from shapleyprio.replay.workload import Workload
from shapleyprio.slurm.command_line import CommandLineSlurm
from shapleyprio.slurm.port import Channel, SlurmError
from shapleyprio.testbed.cluster import PrivateSlurm
from shapleyprio.testbed.errors import SlurmUnavailableHere, TestbedError
from shapleyprio.testbed.processes import end_clients
from shapleyprio.trial.arms import Arm
from shapleyprio.trial.clock import ClusterClock, read_clock
from shapleyprio.trial.errors import TrialError
from shapleyprio.trial.numbering import Submitted, records_by_job
from shapleyprio.trial.plan import members_of, spec_for
from shapleyprio.trial.steering import COMMAND_SECONDS, Cycles, Daemon, Pace, steering
from shapleyprio.trial.submitting import Submitter

LOOK_SECONDS = 0.2
HEAD_START_SECONDS = 1.0  # real ones, for the threads to be ready when the window begins
SETTLE_SECONDS = 2.0  # real ones, for the accounting to hear of the window's last moments
PATIENCE_SECONDS = 30.0  # real ones, for records that are late


class StoppedError(Exception):
    """The trial was told to stop."""


@dataclass(slots=True)
class Stage:
    """How far an arm is; its own thread writes, others read.

    Attributes:
        arm: its name.
        doing: in a word.
        second: of the window that was reached.
        submitted: how many jobs have been submitted.
    """

    arm: str
    doing: str = "waiting"
    second: int = 0
    submitted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What was seen of an arm.

    Attributes:
        arm: which.
        slurm_version: as Slurm tells it.
        begin: second of the cluster's clock at which the window began.
        submitted: what Slurm knows the workload's jobs as.
        records: of these jobs, as accounting has them just after the window's end.
        unreadable: how many lines of sacct could not be read.
        cycles: of the daemon; None where it did not run.
        real_seconds: from the first process to the last.
    """

    arm: Arm
    slurm_version: str
    begin: int
    submitted: Submitted
    records: Sequence[JobRecord]
    unreadable: int
    cycles: Cycles | None
    real_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What all arms of a trial have in common.

    Attributes:
        workload: jobs of one processor each.
        speed: cluster seconds per real second.
        pace: of the daemon.
    """

    workload: Workload
    speed: int
    pace: Pace


def run_arm(
    arm: Arm, conditions: Conditions, directory: Path, stage: Stage, stopped: threading.Event
) -> Trace:
    """Boots a cluster, runs the workload under an arm, and stops everything.

    Args:
        arm: how.
        conditions: what.
        directory: for the whole state, new or empty.
        stage: told how far it is.
        stopped: tells to end everything.

    Raises:
        StoppedError: it was told to stop.
        TrialError: something did not work; the message names the arm.
    """
    try:
        return _run(arm, conditions, directory, stage, stopped)
    except (TestbedError, SlurmUnavailableHere, SlurmError) as error:
        raise TrialError(f"{arm.name}: {error}") from error
    finally:
        stage.doing = "stopped"


def _run(
    arm: Arm, conditions: Conditions, directory: Path, stage: Stage, stopped: threading.Event
) -> Trace:
    workload, began = conditions.workload, time.monotonic()
    with ExitStack() as stack:
        stage.doing = "booting"
        cluster = stack.enter_context(_booted(arm, conditions, directory, stopped))
        clock = read_clock(cluster)
        daemon = None
        if arm.channel is not None:
            running = steering(cluster, workload, arm.channel, conditions.pace)
            daemon = stack.enter_context(running)
        begin = int(clock.now() + HEAD_START_SECONDS * conditions.speed) + 1
        submitter = Submitter(cluster, workload, arm, clock, begin)
        _let_pass(submitter, daemon, clock, begin, conditions, stage, stopped)
        stage.doing = "reading"
        if daemon is not None:
            daemon.end()
        slurm = CommandLineSlurm(environment=cluster.environment, timeout_seconds=COMMAND_SECONDS)
        records, unreadable = _records(slurm, begin, clock, submitter.submitted, stopped)
        version = cluster.run("sinfo", "--version").strip()
        stage.doing = "stopping"
        cycles = None if daemon is None else daemon.cycles()
    return Trace(
        arm=arm,
        slurm_version=version,
        begin=begin,
        submitted=submitter.submitted,
        records=records,
        unreadable=unreadable,
        cycles=cycles,
        real_seconds=time.monotonic() - began,
    )


@contextmanager
def _booted(
    arm: Arm, conditions: Conditions, directory: Path, stopped: threading.Event
) -> Iterator[PrivateSlurm]:
    """The cluster with its accounts; afterwards no process of it is left."""
    workload = conditions.workload
    cluster = PrivateSlurm(directory, spec_for(workload, arm, speed=conditions.speed))
    try:
        with cluster:
            _look(stopped)
            members = members_of(workload)
            cluster.add_accounts(
                dict.fromkeys(member.handle for member in members),
                shares={member.handle: member.processors for member in members},
            )
            if arm.channel is Channel.QOS:
                cluster.add_qos([member.handle for member in members])
            yield cluster
    finally:
        if left := end_clients(cluster.directory):
            raise TrialError(f"could not be stopped: {', '.join(left)}")


def _let_pass(
    submitter: Submitter,
    daemon: Daemon | None,
    clock: ClusterClock,
    begin: int,
    conditions: Conditions,
    stage: Stage,
    stopped: threading.Event,
) -> None:
    """Lets the window pass while jobs are submitted."""
    length = conditions.workload.window.length
    stage.doing = "running"
    with submitter:
        while (second := clock.now() - begin) < length:
            stage.second, stage.submitted = max(0, int(second)), submitter.count
            submitter.check()
            if daemon is not None:
                daemon.check()
            _look(stopped)
    submitter.check()
    stage.second, stage.submitted = length, submitter.count


def _records(
    slurm: CommandLineSlurm,
    begin: int,
    clock: ClusterClock,
    submitted: Submitted,
    stopped: threading.Event,
) -> tuple[list[JobRecord], int]:
    """The records of all jobs, and how many lines could not be read."""
    jobs = set(chain.from_iterable(submitted.values()))
    settled, patience = (time.monotonic() + s for s in (SETTLE_SECONDS, PATIENCE_SECONDS))
    while True:
        complete = slurm.controller().accounting_backlog == 0
        told = list(slurm.records(begin, int(clock.now())))
        records = [record for record in told if isinstance(record, JobRecord)]
        complete &= {job for job, _ in records_by_job(records, submitted)} == jobs
        now = time.monotonic()
        if (complete and now > settled) or now > patience:
            return records, len(told) - len(records)
        _look(stopped)


def _look(stopped: threading.Event) -> None:
    if stopped.wait(LOOK_SECONDS):
        raise StoppedError
