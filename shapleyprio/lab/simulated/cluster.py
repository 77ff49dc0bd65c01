"""The parts of a simulated cluster, and what its users and its administrators do there."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack

from shapleyprio.common.wording import DAY
from shapleyprio.lab.simulated.engine import Engine
from shapleyprio.lab.simulated.jobs import Accounting, Job
from shapleyprio.lab.simulated.scheduling import Associations, Machines, Priorities
from shapleyprio.slurm.layout import Coordinators, PrioritySettings, Reservation
from shapleyprio.slurm.port import Malformed, SlurmRefusedError, SlurmUnavailableError
from shapleyprio.slurm.releases import TESTED_RELEASES

DEFAULT_SETTINGS = PrioritySettings(
    type="priority/multifactor",
    weights={"Age": 0, "Partition": 1_000_000, "QOS": 100_000},
    flags=frozenset(),
    calc_period_seconds=60,
    max_age_seconds=DAY,
    site_factor_plugin="",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSpec:
    """A cluster to simulate.

    Attributes:
        cluster: its name.
        nodes: node -> its processors.
        partitions: partition -> its nodes, in the order in which they fill up.
        accounts: account -> parent account or None.
        qos: QOS -> priority; only ``normal`` with 0 if None.
        settings: how priorities are computed.
        version: the release of Slurm that it reports.
        enforces_accounts: whether it reports that it refuses jobs of unknown accounts; it does.
    """

    cluster: str
    nodes: Mapping[str, int]
    partitions: Mapping[str, Sequence[str]]
    accounts: Mapping[str, str | None]
    qos: Mapping[str, int] | None = None
    settings: PrioritySettings = DEFAULT_SETTINGS
    version: str = f"{TESTED_RELEASES[-1]}.0"
    enforces_accounts: bool = True


DaemonName = Literal["slurmctld", "slurmdbd"]


class SubmitOptions(TypedDict, total=False):
    """What `SimulatedCluster.submit` takes beside account and processing time.

    Attributes:
        processors: how many CPUs the job asks for, on whatever nodes of the partition; 1 if not
            given.
        partition: where it may run; ``all`` if not given.
        user: who submits it.
        qos: its QOS; ``normal`` if not given.
        nice: as sbatch takes it; 0 if not given.
        array: number of tasks, 0 for a plain job.
        at_once: how many of them may run at the same time; None, for all, if not given.
        begin: second before which it may not start; None if there is none.
        limit: seconds after which it is stopped; None, for never, if not given.
        at: second of the submission, if it is to come later; the job is unknown till then.
        after: jobs and arrays that have to end before it may start; none if not given.
    """

    processors: int
    partition: str
    user: str
    qos: str
    nice: int
    array: int
    at_once: int | None
    begin: int | None
    limit: int | None
    at: int | None
    after: tuple[int, ...]


class SimulatedCluster:
    """A cluster in memory, with what users do there, and what goes wrong.

    While slurmctld is down running jobs go on to their ends, but nothing is known of it, starts
    or arrives before its return. While slurmdbd is down the changes of the records pile up.

    Attributes:
        reserved: reservations, which no job heeds.
        malformed: lines to be returned by every `pending` (source squeue) or `records` (others).
        missing_privileges: channel -> what is missing; writing there is refused.
        coordinators_found: what it says of coordinators.
        works_on: number of a job -> seconds for which its processes ignore that it has ended.
    """

    def __init__(self, spec: SimulatedSpec, *, now: int, accounting_delay: int = 0) -> None:
        """Boots a cluster.

        Args:
            spec: what it consists of.
            now: the first second.
            accounting_delay: seconds until a change of a record can be read.
        """
        self.malformed: list[Malformed] = []
        self.reserved: list[Reservation] = []
        self.missing_privileges: dict[str, str] = {}
        self.coordinators_found = Coordinators({}, powerless=False)
        self._spec = spec
        self._accounts = dict(spec.accounts)
        self._machines = Machines(spec.nodes, spec.partitions)
        self._accounting = Accounting(accounting_delay)
        self._priorities = Priorities(
            spec.settings, spec.qos or {"normal": 0}, Associations(self._accounts)
        )
        self._engine = Engine(self._machines, self._priorities, self._accounting, now)
        self._down: set[DaemonName] = set()
        self._writes_left: int | None = None
        self.works_on: dict[int, int] = {}

    # -- time

    @property
    def now(self) -> int:
        """The cluster's clock."""
        return self._engine.now

    def advance(self, to: int) -> None:
        """Advances the time to `to`.

        At every second jobs end, then jobs arrive, then starts are decided. At `to` itself they
        are not yet: what is submitted or written then still counts. ``advance(now)`` decides.
        """
        if to < self.now:
            raise ValueError(f"time does not go back from {self.now} to {to}")
        if "slurmctld" in self._down:
            self._engine.now = to
        else:
            self._engine.advance(to)
        self._accounting.receive(to)

    def next_event(self) -> int | None:
        """Returns the second of the next end or arrival that is known, None if there is none."""
        return self._engine.next_event()

    @property
    def free(self) -> Mapping[str, int]:
        """Node -> processors that no job holds."""
        return dict(self._machines.free)

    # -- what users do

    def submit(
        self, account: str, *, processing_time: int, **options: Unpack[SubmitOptions]
    ) -> int:
        """Submits a job, or an array; returns its id.

        Args:
            account: the job's organization.
            processing_time: seconds it will execute, if its limit allows.
            options: everything else.
        """
        partition, qos = options.get("partition", "all"), options.get("qos", "normal")
        processors, array = options.get("processors", 1), options.get("array", 0)
        at = options.get("at")
        self._need("slurmctld")
        self._check_submission(account, partition, qos, processors, processing_time)
        job_id = self._engine.new_id()
        job = Job(
            job_id=job_id,
            account=account,
            user=options.get("user", "user"),
            partition=partition,
            qos=qos,
            processors=processors,
            processing_time=processing_time,
            limit=options.get("limit"),
            submit=self.now,
            eligible=options.get("begin") or self.now,
            nice=options.get("nice", 0),
            array_id=job_id if array else None,
            tasks=tuple(range(array)),
            at_once=options.get("at_once"),
            after=options.get("after", ()),
        )
        if at is None:
            self._engine.arrive(job)
        else:
            self._engine.announce(job, at)
        return job_id

    def set_nice(self, job_id: int, nice: int) -> None:
        """Changes the nice of one's own job; a user may not go below 0."""
        jobs = self._asked(job_id)
        if nice < 0:
            raise SlurmRefusedError(f"job {job_id}: Access/permission denied")
        self._engine.settle()
        for job in jobs:
            job.nice = nice
            self._engine.compute(job)

    def fix_priority(self, job_id: int, priority: int) -> None:
        """Sets the priority of a waiting job itself, as an operator may; its nice is gone then."""
        jobs = self._asked(job_id, waiting=True)
        self._engine.settle()
        for job in jobs:
            if job.priority != priority:
                job.fixed, job.nice = priority, 0
            self._engine.compute(job)

    def set_account(self, job_id: int, account: str) -> None:
        """Changes the account of one's own waiting job, which keeps its value."""
        jobs = self._asked(job_id, waiting=True)
        self._check_known("account", account, self._accounts)
        self._engine.settle()
        for job in jobs:
            self._engine.set_account(job, account)

    def set_most_jobs(self, account: str, jobs: int | None) -> None:
        """Limits how many jobs of an account run at the same time (GrpJobs); None for no limit."""
        self._need("slurmdbd")
        self._engine.set_most_jobs(account, jobs)

    def set_user_priority(self, account: str, user: str, priority: int) -> None:
        """Changes the association priority of a user in an account, as a coordinator may."""
        self._need("slurmdbd")
        self._engine.set_association_priority(account, user, priority)

    def hold(self, job_id: int) -> None:
        """Keeps a waiting job from starting."""
        for job in self._asked(job_id, waiting=True):
            self._engine.hold(job)

    def release(self, job_id: int) -> None:
        """Undoes a hold."""
        for job in self._asked(job_id, waiting=True):
            self._engine.release(job)

    def requeue(self, job_id: int) -> None:
        """Stops a running job and queues it again under its id, with a new record."""
        for job in self._jobs(job_id, waiting=False):
            self._engine.requeue(job)

    def suspend(self, job_id: int) -> None:
        """Stops a running job where it is; it keeps its processors."""
        for job in self._jobs(job_id, waiting=False):
            self._engine.suspend(job)

    def resume(self, job_id: int) -> None:
        """Resumes a suspended job."""
        for job in self._jobs(job_id, waiting=False):
            self._engine.resume(job)

    def cancel(self, job_id: int) -> None:
        """Ends a job, or takes it out of the queue."""
        for job in self._jobs(job_id):
            self._engine.cancel(job)

    # -- what goes wrong

    def take_down(self, daemon: DaemonName) -> None:
        """Kills a daemon: whatever needs it raises SlurmUnavailableError."""
        self._accounting.receive(self.now)
        self._down.add(daemon)
        self._accounting.up = "slurmdbd" not in self._down

    def bring_up(self, daemon: DaemonName) -> None:
        """Starts a daemon again; it catches up with what it missed."""
        self._down.discard(daemon)
        if daemon == "slurmdbd":
            self._accounting.return_(self.now)
        else:
            self._engine.take_events()

    def drain(self, node: str) -> None:
        """Keeps jobs from starting on a node; those that run there go on."""
        self._machines.drained.add(node)

    def undrain(self, node: str) -> None:
        """Lets jobs start on a node again."""
        self._machines.drained.discard(node)

    def stop_write_after(self, targets: int) -> None:
        """Cuts the next `write` off after as many targets, the controller being away."""
        self._writes_left = targets

    def lose_changes(self, accounts: int) -> None:
        """Ends slurmdbd before the controller hears of the next changes of so many accounts."""
        self._priorities.associations.unheard = accounts

    def purge(self, before: int) -> None:
        """Has slurmdbd forget what ended before a second, as PurgeJobAfter does."""
        self._accounting.purge(before)

    # -- details

    def _need(self, daemon: DaemonName) -> None:
        if daemon in self._down:
            raise SlurmUnavailableError(f"{daemon} does not answer")

    def _asked(self, job_id: int, *, waiting: bool | None = None) -> list[Job]:
        """Returns what somebody asks to change, and counts that."""
        self._need("slurmctld")
        self._engine.changed += 1
        return self._jobs(job_id, waiting=waiting)

    def _jobs(self, job_id: int, *, waiting: bool | None = None) -> list[Job]:
        """Returns the job or an array's tasks, if need be only those that wait or have started."""
        self._need("slurmctld")
        jobs = self._engine.jobs(job_id)
        if waiting is None:
            return jobs
        if not (chosen := [job for job in jobs if (job.start is None) is waiting]):
            raise SlurmRefusedError(f"job {job_id}: {'already started' if waiting else 'waits'}")
        return chosen

    def _check_submission(
        self, account: str, partition: str, qos: str, processors: int, processing_time: int
    ) -> None:
        self._check_known("account", account, self._accounts)
        self._check_known("partition", partition, self._machines.partitions)
        self._check_known("qos", qos, self._priorities.qos)
        if not 1 <= processors <= self._machines.capacity[partition]:
            raise SlurmRefusedError(f"partition {partition} never has {processors} processors")
        if processing_time < 0:
            raise ValueError(f"a processing time of {processing_time} s")

    @staticmethod
    def _check_known(kind: str, name: str, known: Container[str]) -> None:
        if name not in known:
            raise SlurmRefusedError(f"Invalid {kind} {name!r}")
