"""The port to Slurm: the questions and writes that every adapter implements."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from shapleyprio.common.errors import KnownError
from shapleyprio.common.records import record
from shapleyprio.fairness.runs import JobRecord, Run, RunKey
from shapleyprio.slurm.layout import (
    AccountPriority,
    Association,
    Coordinators,
    Layout,
    Node,
    Reservation,
)
from shapleyprio.slurm.running import Moment

ITS_TURN = frozenset({"None", "Priority", "Resources"})
"""Reasons of pending jobs to which nothing but their turn is missing.

Slurm has over two hundred reasons, and more with each release: holds, dependencies, limits,
licenses, reservations, nodes that are down. So these are the ones that count, not those that do
not. ``None`` is the reason of a job that the scheduler has not looked at yet.
"""


class SlurmError(KnownError):
    """Slurm failed to answer or to do something; the message is one line for the admin."""

    exit_code = 3


class SlurmUnavailableError(SlurmError):
    """A daemon of Slurm does not answer: nothing was learned, ask again later."""


class SlurmRefusedError(SlurmError):
    """Slurm answered and refused: asking again will not help."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line of Slurm's that could not be read.

    Attributes:
        source: the command that printed it (``sacct``, ``squeue``, ...).
        text: the line.
        reason: what is wrong with it.
    """

    source: str
    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """How the controller is.

    Attributes:
        time: its clock, seconds since the epoch.
        accounting_backlog: records it has not yet handed to the accounting daemon.
        submitted: jobs submitted since it began to count; it restarts now and then.
        changed: requests of others to change jobs since then, granted or not: another account or
            nice, a hold, a release, and the like. What we write is left out.
        seen: when it answered, on a monotonic clock.
    """

    time: int
    accounting_backlog: int
    submitted: int
    changed: int = 0
    seen: Moment = field(default_factory=Moment.now, compare=False)


@record
class PendingJob:
    """One job that waits, or the part of an array that waits as one.

    Attributes:
        job_id: Slurm's own number.
        array_job_id: that of the array which the job is, is part of, or was split from; `job_id`
            where there is none. A task split from an array inherits what was written to it.
        target: what `Slurm.write` takes for it, such as ``33_[4-9]``.
        label: the name users know it by.
        account, user, partition, qos, reason: as Slurm shows them; reason is why it waits.
        submit: seconds since the epoch.
        eligible: second from which Slurm calls it eligible, the end of its last hold for example;
            it may lie ahead. None while it is held or waits for another job, and for a moment
            after its submission or release, and where it lies beyond 2106.
        limit: seconds it may execute; None where unlimited or not known.
        tasks: how many tasks of an array it stands for; 1 for a plain job.
        at_once: how many tasks of its array may run at the same time (``%4``); None where all may,
            or it stands for one task.
        priority: as Slurm computes it; 0 while held.
        nice: as it stands now, ours included.
        site_factor: as it stands now; None where Slurm does not show it: it does so only for jobs
            that its scheduler has looked at and that may start (not held, not dependent), and
            whose priority is not fixed.
        association: points that its priority has of its association, as of when Slurm last
            computed it; None where `site_factor` is.
        processors: how many CPUs it asks for; 0 where not known.
        is_fixed: whether somebody has set its priority itself, so that Slurm does not compute it
            until the job is held and released.
    """

    job_id: int
    array_job_id: int
    target: str
    label: str
    account: str
    user: str
    partition: str
    qos: str
    reason: str
    submit: int
    eligible: int | None
    limit: int | None
    tasks: int
    at_once: int | None
    priority: int
    nice: int
    site_factor: int | None
    association: int | None
    processors: int
    is_fixed: bool = False

    @property
    def waits_for_its_turn(self) -> bool:
        """Whether, for all that Slurm says, nothing but its turn is missing."""
        return self.reason in ITS_TURN


def in_slurms_order(job: PendingJob) -> tuple[int, int, int, float]:
    """Returns by what slurmctld orders the jobs of one tier (`sort_job_queue2`), the first first.

    That is the priority, then the time of submission, then the number of the job or its array, then
    the task. What still waits of an array as one comes after its single tasks. Held jobs are in no
    order among each other.
    """
    if job.priority == 0:
        return 0, 0, 0, 0
    task = job.label.partition("_")[2]
    number = float(task) if task.isdecimal() else math.inf
    return -job.priority, job.submit, job.array_job_id, number


@dataclass(frozen=True, slots=True)
class PendingQueue:
    """The jobs that wait.

    Attributes:
        jobs: one for each record that Slurm keeps.
        malformed: lines that could not be read. Jobs may be missing in `jobs` because of them.
        more_malformed: how many such lines there are beside these.
        elsewhere: jobs of a federation that may run here as well, but count at another cluster, and
            that cluster.
    """

    jobs: Sequence[PendingJob] = ()
    malformed: Sequence[Malformed] = ()
    more_malformed: int = 0
    elsewhere: Sequence[tuple[PendingJob, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedJob:
    """One job, or task of an array, that runs or is suspended.

    Attributes:
        job_id: Slurm's own number.
        array_job_id: that of its array; `job_id` where there is none.
        label: the name users know it by.
        account: as Slurm shows it.
        submit: seconds since the epoch.
    """

    job_id: int
    array_job_id: int
    label: str
    account: str
    submit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What an adapter needs to know to speak to a cluster.

    Attributes:
        weight: what counts as a processor: ``cpus``, ``billing`` or a TRES such as ``gres/gpu``.
        weight_of: partition -> what counts there, if it is something else.
        timeout_seconds: how long one question or command may take.
        bin_directory: directory of Slurm's commands; None for the PATH.
        environment: variables for Slurm's commands and libraries, beside our own.
        cluster: its name in accounting; None for the one slurm.conf names.
    """

    weight: str = "cpus"
    weight_of: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 60
    bin_directory: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    cluster: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterInUse:
    """How a cluster is spoken to.

    Attributes:
        name: of the adapter.
        instead_of: the one that would have been preferred; empty if there is none.
        why: that one is not used; empty if there is none.
    """

    name: str
    instead_of: str = ""
    why: str = ""


def unchecked() -> float:
    """Lets everything be written for ever, where no other process can steer the cluster."""
    return math.inf


class Slurm(Protocol):
    """One cluster.

    Every method raises SlurmUnavailableError when a daemon it needs does not answer within the
    adapter's own time limit, and SlurmRefusedError when Slurm refuses.
    """

    def adapter(self) -> AdapterInUse:
        """Says how the cluster is spoken to; asks nothing of it.

        An adapter that has to find out whether it can be used knows after the first `controller`.
        """

    def controller(self) -> Controller:
        """Asks the controller for its state; the cheapest call there is."""

    def cluster(self) -> str:
        """Reads ClusterName."""

    def layout(self) -> Layout:
        """Reads nodes, partitions, accounts, QOS and priority settings."""

    def nodes(self) -> Mapping[str, Node]:
        """Reads the nodes as they are now: name -> node."""

    def qos_priorities(self) -> Mapping[str, int]:
        """Reads QOS -> priority."""

    def account_priorities(self) -> Mapping[str, AccountPriority]:
        """Reads account -> its association priority, as accounting has it."""

    def priorities_in_force(self, accounts: Collection[str]) -> Mapping[str, int]:
        """Reads what the controller goes by at some accounts: account -> priority.

        At an account that has its priority from above it may show 0, or what was there before.
        """

    def users_priorities_in_force(self, accounts: Collection[str]) -> Mapping[Association, int]:
        """Reads what the controller goes by at the users of some accounts.

        It prints three quarters of a kilobyte for each of them, so ask rarely.
        """

    def coordinators(self) -> Coordinators:
        """Reads who coordinates accounts."""

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        """Yields accounting records of jobs that existed at some time in [since, until].

        Every execution of a requeued job has a record of its own, also one that has not ended.
        Those of jobs that wait are left out: they say nothing of work. Lines come as they are read.
        """

    def records_of(self, job_ids: Sequence[int]) -> Iterator[JobRecord | Malformed]:
        """Yields all accounting records of the jobs with these ids; unknown ids are passed over."""

    def processors_of(self, runs: Sequence[Run]) -> Mapping[RunKey, Mapping[str, int]]:
        """Reads how many processors runs hold on each of their nodes, which no record says.

        The controller is asked for each run alone, so ask rarely. It knows jobs that have not
        ended, and for MinJobAge those that have.

        Args:
            runs: started.

        Returns:
            run -> node -> processors in the configured weight. Runs of which Slurm does not know
            it, does not say it clearly, or not in this weight, are left out.
        """

    def last_work(self, runs: Sequence[Run]) -> Mapping[RunKey, int]:
        """Reads when the last processes of ended runs ended, which may be after their job.

        Slurm knows it when KillWait is over; before, it shows the job's end.

        Args:
            runs: ended.

        Returns:
            run -> second. Runs of which accounting does not know it are left out.
        """

    def pending(self) -> PendingQueue:
        """Reads the jobs that wait."""

    def dependencies(self, job_ids: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
        """Reads after the ends of which others some pending jobs may start.

        Returns:
            job id -> numbers of other jobs and arrays that have not ended: of jobs that wait for
            all of them, and for nothing else of others, such as a failure or the first of several.
        """

    def reservations(self) -> Sequence[Reservation]:
        """Reads the reservations that have not ended, without those of parts of nodes."""

    def started(self) -> Sequence[StartedJob]:
        """Reads the jobs that have started and not ended, as the controller has them.

        Accounting knows them later. Lines that cannot be read are left out.
        """

    def values_of(self, channel: str, job_ids: Collection[int]) -> Mapping[int, int | None]:
        """Reads the values at some pending jobs; where many wait, far sooner than `pending` does.

        Args:
            channel: name of one that writes to jobs, such as ``nice``.
            job_ids: numbers of `PendingJob.job_id`.

        Returns:
            job id -> its value, None where Slurm does not show it (`PendingJob` says when); jobs
            that no longer wait are left out.
        """

    def write(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float] = unchecked
    ) -> Mapping[str, str]:
        """Writes priorities: the site factor or nice of jobs, or the priority of QOS or accounts.

        They are written in the order of the values, the first ones first. Writing stops at the
        first sign that the controller is away; what was written by then stays written, and can be
        read back.

        Args:
            channel: name of the channel to write to, such as ``site_factor``.
            values: target (of a PendingJob, or a QOS or account) -> new value; UNSET_PRIORITY
                removes that of an account.
            check: called before each of the small batches in which they are handed to Slurm; what
                it raises ends the writing. It returns for how many seconds from then on nobody
                else writes; no process that we start does so for longer, even if we freeze.

        Returns:
            target -> why, for those that Slurm would not change (a job that is gone, or one
            that accounting has not registered yet) or that the adapter's time limit kept from
            being written. Slurm sometimes complains and changes the
            value all the same: read it back to know.
        """

    def privilege(self, channel: str) -> str | None:
        """Returns None if we may write to the channel, else what is missing and how to get it."""
