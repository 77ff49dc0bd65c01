"""A cluster spoken to through Slurm's own commands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from shapleyprio.fairness.runs import JobRecord, Run, RunKey
from shapleyprio.slurm.command_line.associations import CommandLineAssociations
from shapleyprio.slurm.command_line.commands import SlurmCommands
from shapleyprio.slurm.command_line.config import (
    configuration,
    ping_now_and_then,
    qos_priorities,
    readable,
    shown,
)
from shapleyprio.slurm.command_line.jobs import CommandLineDetails, CommandLineValues
from shapleyprio.slurm.command_line.writes import CommandLineWrites
from shapleyprio.slurm.layout import (
    ROOT,
    AccountPriority,
    Association,
    Coordinators,
    Layout,
    Node,
    Reservation,
)
from shapleyprio.slurm.port import (
    AdapterInUse,
    Connection,
    Controller,
    Malformed,
    PendingJob,
    PendingQueue,
    StartedJob,
    unchecked,
)
from shapleyprio.slurm.text import config as text_config
from shapleyprio.slurm.text.accounting import (
    FIELDS,
    STEP_FIELDS,
    KnownRecords,
    accounting_line,
    last_ends,
)
from shapleyprio.slurm.text.listed import (
    DEPENDENT_FIELDS,
    FIRST_FEDERATED,
    SIBLING_FIELDS,
    STARTED_FIELDS,
    counted_elsewhere,
    dependent_line,
    started_line,
)
from shapleyprio.slurm.text.queue import FACTORS_FORMAT, factors_in
from shapleyprio.slurm.text.squeue import (
    ARRAY_FIELDS,
    KnownRecord,
    ListedAgainError,
    WaitingRecords,
    format_of,
    task_format,
)
from shapleyprio.slurm.text.values import new_delimiter

EARLIEST_TIME = 1_000_000  # Slurm takes smaller numbers for mistakes
JOBS_AT_ONCE = 500  # in one sacct; Linux takes 128 KiB in one argument
SACCT = ("-n", "-p", "-D", "-a", "--noconvert")
RECORDS = ("-X", "-o", ",".join(FIELDS))
STEPS = ("-o", ",".join(STEP_FIELDS))
SQUEUE = ("-h", "-a", "--local", "--noconvert", "-t")
WAITING, STARTED = (*SQUEUE, "PD"), (*SQUEUE, "R,S")
SPRIO = ("-h", "--local", "-o", FACTORS_FORMAT)


class CommandLineSlurm:
    """The port `Slurm`, through sacct, squeue, sprio, sdiag, scontrol and sacctmgr.

    Args:
        connection: settings; the environment is that of the commands.
    """

    def __init__(self, connection: Connection) -> None:
        cluster = connection.cluster
        self._weight = _tres(connection.weight)
        self._weight_of = {name: _tres(one) for name, one in connection.weight_of.items()}
        self._sacct = (*SACCT, f"--clusters={cluster}") if cluster else (*SACCT, "--local")
        self._cluster = cluster
        self._commands = SlurmCommands(
            timeout_seconds=connection.timeout_seconds,
            bin_directory=connection.bin_directory,
            environment=connection.environment,
        )
        self._associations = CommandLineAssociations(self._commands, self.cluster)
        self._writes = CommandLineWrites(self._commands, self._associations)
        self._values = CommandLineValues(self._commands)
        self._details = CommandLineDetails(self._commands, self._weight, self._weight_of)
        self._known_records = KnownRecords(self._weight, self._weight_of)
        self._known_waiting: dict[int, KnownRecord] = {}

    def adapter(self) -> AdapterInUse:
        """Names the command line."""
        return AdapterInUse(name="command_line")

    # -- reading

    def controller(self) -> Controller:
        """Asks the controller for its state."""
        ping_now_and_then(self._commands)
        return self._less_ours(readable(text_config.controller(self._commands.read("sdiag"))))

    def cluster(self) -> str:
        """Reads ClusterName."""
        return self._cluster or configuration(self._commands).get("ClusterName", "")

    def layout(self) -> Layout:
        """Reads nodes, partitions, accounts, QOS and priority settings."""
        config = configuration(self._commands)
        cluster = self._cluster or config.get("ClusterName", "")
        partitions = shown(
            self._commands, text_config.partition_line, "scontrol", "show", "partition", "-a", "-o"
        )
        return Layout(
            cluster=cluster,
            version=config.get("SLURM_VERSION", ""),
            nodes=self._nodes(),
            partitions={partition.name: partition for partition in partitions},
            accounts=_below_the_root(self._associations.parents(cluster)),
            qos_priorities=self.qos_priorities(),
            enforces_accounts=text_config.enforces_accounts(config),
            settings=readable(text_config.priority_settings(config)),
            submission=text_config.submission_settings(config),
            kill_wait_seconds=text_config.kill_wait(config),
            daemon_hosts=text_config.daemon_hosts(config),
        )

    def nodes(self) -> Mapping[str, Node]:
        """Reads the nodes as they are now: name -> node."""
        ping_now_and_then(self._commands)
        return self._nodes()

    def qos_priorities(self) -> Mapping[str, int]:
        """Reads QOS -> priority."""
        return qos_priorities(self._commands)

    def account_priorities(self) -> Mapping[str, AccountPriority]:
        """Reads account -> its association priority, as accounting has it."""
        return self._associations.account_priorities()

    def priorities_in_force(self, accounts: Collection[str]) -> Mapping[str, int]:
        """Reads what the controller goes by at some accounts: account -> priority."""
        return self._associations.priorities_in_force(accounts)

    def users_priorities_in_force(self, accounts: Collection[str]) -> Mapping[Association, int]:
        """Reads what the controller goes by at the users of some accounts."""
        return self._associations.users_priorities_in_force(accounts)

    def coordinators(self) -> Coordinators:
        """Reads who coordinates accounts."""
        return self._associations.coordinators()

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        """Yields accounting records of jobs that existed in [since, until] and do not wait."""
        delimiter = new_delimiter()
        which = (*RECORDS, "-S", _time(since), "-E", _time(until + 1))
        return self._known_records.read(
            self._commands.texts(*self._listing(delimiter, *which)), delimiter
        )

    def records_of(self, job_ids: Sequence[int]) -> Iterator[JobRecord | Malformed]:
        """Yields all accounting records of the jobs with these ids; unknown ids are passed over."""
        ids = sorted(set(job_ids))
        for some in _in_parts(ids):
            wanted = set(some)
            delimiter = new_delimiter()
            which = (*RECORDS, "-j", ",".join(map(str, some)))
            for line in self._commands.lines(*self._listing(delimiter, *which)):
                record = accounting_line(line, self._weight, delimiter, self._weight_of)
                # an array's own number brings all its tasks
                if isinstance(record, Malformed) or record.job_id in wanted:
                    yield record

    def processors_of(self, runs: Sequence[Run]) -> Mapping[RunKey, Mapping[str, int]]:
        """Reads how many processors runs hold on each of their nodes."""
        return self._details.processors_of(runs)

    def last_work(self, runs: Sequence[Run]) -> Mapping[RunKey, int]:
        """Reads when the last steps of ended runs ended."""
        wanted = {run.key for run in runs}
        ids = sorted({key.job_id for key in wanted})
        found: dict[RunKey, int] = {}
        for some in _in_parts(ids):
            delimiter = new_delimiter()
            which = (*STEPS, "-j", ",".join(map(str, some)))
            lines = self._commands.lines(*self._listing(delimiter, *which))
            found |= last_ends(lines, delimiter)
        return {key: end for key, end in found.items() if key in wanted}

    def pending(self) -> PendingQueue:
        """Reads the jobs that wait."""
        ping_now_and_then(self._commands)
        try:
            records = self._records_that_wait()
        except ListedAgainError:
            self._known_waiting = {}
            records = self._records_that_wait()
        if records.has_arrays():
            delimiter = new_delimiter()
            which = (*WAITING, "-O", format_of(ARRAY_FIELDS, delimiter))
            records.complete(self._commands.texts("squeue", *which), delimiter)
        factors, malformed = factors_in(self._commands.texts("sprio", *SPRIO))
        queue = records.queue(factors)
        self._known_waiting = records.known
        elsewhere = self._counted_elsewhere(queue.jobs)
        if not elsewhere:
            return replace(queue, malformed=[*queue.malformed, *malformed])
        return replace(
            queue,
            jobs=[job for job in queue.jobs if job.job_id not in elsewhere],
            malformed=[*queue.malformed, *malformed],
            elsewhere=[
                (job, elsewhere[job.job_id]) for job in queue.jobs if job.job_id in elsewhere
            ],
        )

    def dependencies(self, job_ids: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
        """Reads after the ends of which others some pending jobs may start."""
        delimiter = new_delimiter()
        which = ("-j", ",".join(map(str, job_ids)), "-O", format_of(DEPENDENT_FIELDS, delimiter))
        lines = self._commands.lines("squeue", *WAITING, *which)
        return dict(found for line in lines if (found := dependent_line(line, delimiter)))

    def reservations(self) -> Sequence[Reservation]:
        """Reads the reservations that have not ended, without those of parts of nodes."""
        lines = self._commands.read("scontrol", "show", "reservation", "-o").split("\n")
        found = (text_config.reservation_line(line) for line in lines if "=" in line)
        return [one for one in map(readable, found) if one.nodes]

    def started(self) -> Sequence[StartedJob]:
        """Reads the jobs that have started and not ended, as the controller has them."""
        ping_now_and_then(self._commands)
        delimiter = new_delimiter()
        lines = self._commands.lines("squeue", *STARTED, "-O", format_of(STARTED_FIELDS, delimiter))
        found = (started_line(line, delimiter) for line in lines)
        return [job for job in found if job is not None]

    def values_of(self, channel: str, job_ids: Collection[int]) -> Mapping[int, int | None]:
        """Reads the site factors or nices of some pending jobs."""
        return self._values.of(channel, job_ids)

    # -- writing

    def write(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float] = unchecked
    ) -> Mapping[str, str]:
        """Writes priorities and returns what Slurm would not change, with the reasons."""
        return self._writes.write(channel, values, check)

    def privilege(self, channel: str) -> str | None:
        """Returns None if we may write to the channel, else what is missing and how to get it."""
        return self._writes.privilege(channel)

    def _less_ours(self, found: Controller) -> Controller:
        return replace(found, changed=found.changed - self._writes.requests)

    def _nodes(self) -> Mapping[str, Node]:
        found = shown(self._commands, text_config.node_line, "scontrol", "show", "node", "-a", "-o")
        return {node.name: node for node in found}

    def _counted_elsewhere(self, jobs: Sequence[PendingJob]) -> Mapping[int, str]:
        """Reads which jobs of a federation count at another of its clusters, and at which."""
        if max(map(attrgetter("job_id"), jobs), default=0) < FIRST_FEDERATED:
            return {}
        return counted_elsewhere(self._commands.lines("squeue", *WAITING, "-O", SIBLING_FIELDS))

    def _records_that_wait(self) -> WaitingRecords:
        delimiter = new_delimiter()
        which = (*WAITING, "--array", "-O", task_format(delimiter))
        listed = self._commands.texts("squeue", *which)
        return WaitingRecords(listed, delimiter, self._known_waiting)

    def _listing(self, delimiter: str, *options: str) -> tuple[str, ...]:
        return "sacct", *self._sacct, f"--delimiter={delimiter}", *options


def _in_parts(job_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(job_ids), JOBS_AT_ONCE):
        yield job_ids[first : first + JOBS_AT_ONCE]


def _tres(weight: str) -> str:
    return "cpu" if weight == "cpus" else weight


def _time(second: int) -> str:
    return f"uts{max(second, EARLIEST_TIME)}"


def _below_the_root(parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """Returns account -> parent, None for those below the root, which is left out."""
    return {
        account: None if parent == ROOT else parent
        for account, parent in parents.items()
        if account != ROOT
    }
