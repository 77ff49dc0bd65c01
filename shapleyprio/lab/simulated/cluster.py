"""The simulated Slurm as its users, its administrators and the service see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from shapleyprio.fairness.runs import JobRecord, Run, RunKey
from shapleyprio.lab.simulated.accounting import Accounting
from shapleyprio.lab.simulated.associations import Associations
from shapleyprio.lab.simulated.engine import Engine
from shapleyprio.lab.simulated.jobs import Job
from shapleyprio.lab.simulated.scheduling import Machines, Priorities
from shapleyprio.lab.simulated.spec import SimulatedSpec
from shapleyprio.slurm.associations import AccountPriority, Association, Coordinators
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.layout import Layout, Node, Partition, Reservation
from shapleyprio.slurm.port import (
    AdapterInUse,
    Controller,
    Malformed,
    PendingQueue,
    SlurmRefusedError,
    SlurmUnavailableError,
    StartedJob,
    unchecked,
)
from shapleyprio.slurm.running import Moment

DaemonName = Literal["slurmctld", "slurmdbd"]


class SubmitOptions(TypedDict, total=False):
    """What `SimulatedSlurm.submit` takes beside account and processing time.

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


class SimulatedSlurm:
    """A cluster in memory; it implements `shapleyprio.slurm.port.Slurm`.

    >>> spec = SimulatedSpec(
    ...     cluster="c", nodes={"a1": 4}, partitions={"all": ["a1"]}, accounts={"a": None}
    ... )
    >>> slurm = SimulatedSlurm(spec, now=0)
    >>> job = slurm.submit("a", processors=2, processing_time=60)
    >>> slurm.advance(100)
    >>> record, = slurm.records(0, 100)
    >>> record.start, record.end, record.processors
    (0, 60, 2)

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

    def adapter(self) -> AdapterInUse:
        """Names the simulation."""
        return AdapterInUse(name="simulated")

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

    def correct_record(self, job_id: int, submit: int, **changes: Any) -> None:
        """Changes columns of an accounting record by hand, as for a runaway job."""
        self._accounting.receive(self.now)
        self._accounting.correct(job_id, submit, changes)

    def purge(self, before: int) -> None:
        """Has slurmdbd forget what ended before a second, as PurgeJobAfter does."""
        self._accounting.purge(before)

    # -- the port

    def controller(self) -> Controller:
        """Returns the clock and the backlog."""
        self._need("slurmctld")
        self._accounting.receive(self.now)
        return Controller(
            time=self.now,
            accounting_backlog=self._accounting.backlog,
            submitted=self._engine.submitted,
            changed=self._engine.changed,
            seen=Moment("simulated", self.now),
        )

    def cluster(self) -> str:
        """Returns its name."""
        self._need("slurmctld")
        return self._spec.cluster

    def layout(self) -> Layout:
        """Returns nodes, partitions, accounts, QOS and settings."""
        self._need("slurmctld")
        self._need("slurmdbd")
        return Layout(
            cluster=self._spec.cluster,
            version=self._spec.version,
            nodes=self.nodes(),
            partitions={
                name: Partition(name=name, nodes=nodes, allow_accounts=(), priority_job_factor=1)
                for name, nodes in self._machines.partitions.items()
            },
            accounts=dict(self._accounts),
            qos_priorities=dict(self._priorities.qos),
            enforces_accounts=self._spec.enforces_accounts,
            settings=self._priorities.settings,
        )

    def nodes(self) -> Mapping[str, Node]:
        """Returns the nodes: name -> node."""
        self._need("slurmctld")
        machines, found = self._machines, {}
        for name, size in machines.size.items():
            held = size - machines.free[name]
            found[name] = Node(
                name=name,
                tres={"cpu": size, "billing": size},
                closed=name in machines.drained,
                allocated={"cpu": held, "billing": held},
            )
        return found

    def qos_priorities(self) -> Mapping[str, int]:
        """Reads QOS -> priority."""
        self._need("slurmdbd")
        return dict(self._priorities.qos)

    def account_priorities(self) -> Mapping[str, AccountPriority]:
        """Reads account -> its association priority."""
        self._need("slurmdbd")
        return self._priorities.associations.accounts()

    def priorities_in_force(self, accounts: Collection[str]) -> Mapping[str, int]:
        """Reads what the controller goes by at some accounts: account -> priority."""
        self._need("slurmctld")
        found = self._priorities.associations.in_force()
        return {account: found[account] for account in accounts if account in found}

    def users_priorities_in_force(self, accounts: Collection[str]) -> Mapping[Association, int]:
        """Reads those of users that have one of their own."""
        self._need("slurmctld")
        found = self._priorities.associations.of_users()
        return {one: priority for one, priority in found.items() if one.account in accounts}

    def coordinators(self) -> Coordinators:
        """Returns what was made up."""
        self._need("slurmdbd")
        return self.coordinators_found

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        """Yields the records of jobs that existed in [since, until] and do not wait."""
        self._need("slurmdbd")
        self._accounting.receive(self.now)
        bad = [line for line in self.malformed if line.source != "squeue"]
        return iter([*bad, *self._accounting.window(since, until, self.now)])

    def records_of(self, job_ids: Sequence[int]) -> Iterator[JobRecord | Malformed]:
        """Yields all records of some jobs."""
        self._need("slurmdbd")
        self._accounting.receive(self.now)
        return iter(list(self._accounting.of(job_ids, self.now)))

    def processors_of(self, runs: Sequence[Run]) -> Mapping[RunKey, Mapping[str, int]]:
        """Reads how many processors runs hold on each of their nodes, until they end."""
        self._need("slurmctld")
        found = {}
        for run in runs:
            for job in self._engine.named(run.label)[0]:
                if (job.job_id, job.start) == (run.key.job_id, run.key.start):
                    found[run.key] = dict(job.allocation)
        return found

    def last_work(self, runs: Sequence[Run]) -> Mapping[RunKey, int]:
        """Reads when the last processes of ended runs ended."""
        self._need("slurmdbd")
        return {
            run.key: run.end + self.works_on.get(run.key.job_id, 0)
            for run in runs
            if run.end is not None
        }

    def pending(self) -> PendingQueue:
        """Reads the jobs that wait."""
        self._need("slurmctld")
        self._engine.settle()
        return PendingQueue(
            jobs=[job.pending() for job in self._engine.waiting.jobs.values()],
            malformed=[line for line in self.malformed if line.source == "squeue"],
        )

    def dependencies(self, job_ids: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
        """Reads after the ends of which others some waiting jobs may start."""
        self._need("slurmctld")
        found = ((job_id, self._engine.dependencies(job_id)) for job_id in job_ids)
        return {job_id: others for job_id, others in found if others}

    def reservations(self) -> Sequence[Reservation]:
        """Reads the reservations that have not ended."""
        self._need("slurmctld")
        return [one for one in self.reserved if one.end > self.now]

    def started(self) -> Sequence[StartedJob]:
        """Reads the jobs that have started and not ended."""
        self._need("slurmctld")
        return [job.started() for job in self._engine.started()]

    def values_of(self, channel: str, job_ids: Collection[int]) -> Mapping[int, int | None]:
        """Reads site factors or nices of some waiting jobs."""
        self._need("slurmctld")
        self._engine.settle()
        waiting = self._engine.waiting.jobs
        shown = {job_id: waiting[job_id].pending() for job_id in job_ids if job_id in waiting}
        return {
            job_id: 0 if job.is_fixed else CHANNELS[channel].shown(job)
            for job_id, job in shown.items()
        }

    def write(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float] = unchecked
    ) -> Mapping[str, str]:
        """Writes site factors, nices, or priorities of QOS or accounts."""
        if not values:
            return {}
        job_field, carrier = CHANNELS[channel].job_field, CHANNELS[channel].carrier
        if carrier != "QOS":
            self._need("slurmctld")
        if carrier != "job":
            self._need("slurmdbd")
        if missing := self.missing_privileges.get(channel):
            raise SlurmRefusedError(f"Access/permission denied: {missing}")
        self._engine.settle()
        refused = {}
        for target, value in values.items():
            check()
            self._count_write()
            if job_field is not None:
                why = self._write_jobs(job_field.attribute, target, value)
            elif carrier == "QOS":
                why = self._write_qos(target, value)
            else:
                why = self._write_account(target, value)
            if why is not None:
                refused[target] = why
        return refused

    def privilege(self, channel: str) -> str | None:
        """Returns what is missing for a channel."""
        self._need("slurmctld")
        return self.missing_privileges.get(channel)

    # -- details

    def _write_qos(self, target: str, value: int) -> str | None:
        if target not in self._priorities.qos:
            return "no such QOS"
        if value < 0:
            return f"{value} is below 0"
        self._engine.set_qos_priority(target, value)
        return None

    def _write_account(self, target: str, value: int) -> str | None:
        if target not in self._accounts:
            return "no such account"
        self._engine.set_association_priority(target, "", value)
        return None

    def _write_jobs(self, field: str, target: str, value: int) -> str | None:
        jobs, complaint = self._engine.named(target)
        for job in jobs:
            if field != "nice" or job.fixed is None:
                setattr(job, field, value)
            self._engine.compute(job)
        return complaint

    def _count_write(self) -> None:
        if self._writes_left == 0:
            self._writes_left = None
            raise SlurmUnavailableError("slurmctld went away during the write")
        if self._writes_left is not None:
            self._writes_left -= 1

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
