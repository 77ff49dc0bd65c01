"""The simulated Slurm as the service sees it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from shapleyprio.fairness.runs import JobRecord, Run, RunKey
from shapleyprio.lab.simulated.cluster import SimulatedCluster
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.layout import (
    AccountPriority,
    Association,
    Coordinators,
    Layout,
    Node,
    Partition,
    Reservation,
)
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


class SimulatedSlurm(SimulatedCluster):
    """Implements `shapleyprio.slurm.port.Slurm` on a cluster in memory.

    >>> from shapleyprio.lab.simulated.cluster import SimulatedSpec
    >>> spec = SimulatedSpec(
    ...     cluster="c", nodes={"a1": 4}, partitions={"all": ["a1"]}, accounts={"a": None}
    ... )
    >>> slurm = SimulatedSlurm(spec, now=0)
    >>> job = slurm.submit("a", processors=2, processing_time=60)
    >>> slurm.advance(100)
    >>> record, = slurm.records(0, 100)
    >>> record.start, record.end, record.processors
    (0, 60, 2)
    """

    def adapter(self) -> AdapterInUse:
        """Names the simulation."""
        return AdapterInUse(name="simulated")

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
