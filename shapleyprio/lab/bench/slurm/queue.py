"""A private real Slurm with a long queue, and our daemon's cycles on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from shapleyprio.common.wording import DAY
from shapleyprio.config import Config, load_config
from shapleyprio.config.keys import PushSection
from shapleyprio.daemon.pushing.rollback import roll_back
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.daemon.steering.report import CycleReport
from shapleyprio.fairness.runs import JobRecord
from shapleyprio.lab.bench.cycle.workloads import rotated
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.lab.testbed.processes import kill_leftovers
from shapleyprio.lab.testbed.steering import SteeringDaemon
from shapleyprio.lab.trial.plan import CLUSTER
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.port import Connection, Malformed, SlurmError
from shapleyprio.store import ClusterStore, Store

NODES = {"organization1": "node1", "organization2": "node2", "organization3": "node3"}
"""Organization, with the account and the QOS of that name -> the node it brings."""

PROCESSORS_A_NODE = 4
MOST_OTHER_JOBS = 10_000
"""Number of jobs beside those that wait all the time."""

MOST_WRITES = PushSection().most_writes
"""Writes of a cycle at most, as an administrator finds it."""

MOST_SUBMITTED = 10_000
"""More jobs are made of arrays, which is sooner done."""

SUBMITTERS = 4
COMMAND_SECONDS = 300
"""More than the daemon's default: on an overloaded machine we want to know how long it takes."""

PATIENCE_SECONDS = 300.0
"""Seconds until the scheduler has seen all jobs, on a busy machine."""

PAST_SECONDS = 1_000
SOME_SECONDS_AGO = 2_000
NOBODYS_NODE = "spare"
"""Work there is used by an organization and contributed by none."""

BASE_PRIORITY = 1_000_000
"""The priority that every job has, well above Slurm's floor; more is what somebody gave it."""

SETTINGS = {
    "PriorityWeightAge": "0",
    "PriorityWeightPartition": str(BASE_PRIORITY),
    # Slurm's own default, in place of a testbed's haste
    "SchedulerParameters": "batch_sched_delay=3",
    # what the channels qos and association ask for, and the others do not mind
    "PriorityFlags": "NO_NORMAL_QOS,NO_NORMAL_ASSOC",
    "PriorityWeightAssoc": "1",
    "PriorityWeightQOS": "1",
    "MaxArraySize": "100001",  # more than the tasks of any array
}

LARGE_SETTINGS = {
    # by default each update of a job makes the scheduler look at the whole queue
    "SchedulerParameters": "batch_sched_delay=3,sched_min_interval=2000000",
}
"""Settings for that many jobs, after Slurm's guide to high throughput."""


class RotatingSlurm(CommandLineSlurm):
    """A real cluster with records of a made-up past, which gives every organization its rank.

    Args:
        cluster: running.

    Attributes:
        rotation: with another one, every organization has another's rank.
    """

    def __init__(self, cluster: PrivateSlurm) -> None:
        super().__init__(
            Connection(environment=cluster.environment, timeout_seconds=COMMAND_SECONDS)
        )
        self.rotation = 0
        self._begin = cluster.now() - SOME_SECONDS_AGO

    def records(self, since: int, until: int) -> Iterator[JobRecord | Malformed]:
        """Reads the records of the cluster, and those of the past, corrected with each rotation."""
        begin, end = self._begin, self._begin + PAST_SECONDS
        yield from rotated(NODES, self.rotation, begin=begin, end=end, node=NOBODYS_NODE)
        yield from super().records(since, until)


class Queue:
    """Jobs that wait on a full cluster.

    Args:
        cluster: with all its accounts.
        pending: how many jobs wait, once they are submitted.

    Attributes:
        cluster: where they wait.
        pending: how many they are.
        slurm: the cluster, through all channels' cycles.
        version: Slurm's, as `sinfo --version` prints it.
        table: where slurmctld's Lua script looks for points, once it is there.
    """

    def __init__(self, cluster: PrivateSlurm, pending: int) -> None:
        self.cluster = cluster
        self.pending = pending
        self.slurm = RotatingSlurm(cluster)
        self.version = cluster.run("sinfo", "--version").strip()
        self.table = cluster.directory / "points"
        self._rotations: dict[str, int] = {}

    def fill(self, progress: Callable[[int], None]) -> None:
        """Fills the nodes and submits the jobs that wait.

        Raises:
            TestbedError: Slurm does not take them.
        """
        for account, node in NODES.items():
            where = (f"--nodelist={node}",)
            self.cluster.submit(account, DAY, processors=PROCESSORS_A_NODE, extra=where)
        running = ("squeue", "-h", "-t", "R", "-o", "%A")
        self.cluster.wait_until(
            lambda: len(self.cluster.run(*running).split()) == len(NODES),
            real_seconds=PATIENCE_SECONDS,
            what="the nodes to be busy",
        )
        if self.pending > MOST_SUBMITTED:
            for account in NODES:
                self._split(account)
            progress(self.pending)
        else:
            self._submit_all(progress)

        def all_seen() -> bool:
            return len(self.cluster.run("sprio", "-h", "-o", "%i").split()) == self.pending

        self.cluster.wait_until(
            all_seen, real_seconds=PATIENCE_SECONDS, what="the scheduler to see all jobs"
        )

    def _submit_all(self, progress: Callable[[int], None]) -> None:
        with ThreadPoolExecutor(SUBMITTERS) as pool:
            submissions = [pool.submit(self.submit, number) for number in range(self.pending)]
            try:
                for done, submission in enumerate(as_completed(submissions), start=1):
                    submission.result()
                    progress(done)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _split(self, account: str) -> None:
        """Submits an account's jobs as an array, and splits it into one record for each task.

        Slurm does so when all tasks but one are updated.
        """
        number = list(NODES).index(account)
        tasks = len(range(number, self.pending, len(NODES)))
        array = self.cluster.submit(account, DAY, array=f"0-{tasks - 1}")
        self.cluster.run("scontrol", "update", f"JobId={array}_[0-{tasks - 2}]", "Nice=0")

    def submit(self, number: int) -> int:
        """Submits a job, the organizations' in turn; returns its id."""
        return self.cluster.submit(self.account(number), DAY)

    def account(self, number: int) -> str:
        """Returns whose job `submit` submits."""
        return list(NODES)[number % len(NODES)]

    @contextmanager
    def cycles(self, channel: str, table: Path | None = None) -> Iterator[Cycles]:
        """Yields cycles that run in this process.

        Args:
            channel: through which they write.
            table: of points at submission, which they write, too; None for none.
        """
        config = load_config(self._config_file(channel, table=table))
        # else all jobs would have to be written again
        self.slurm.rotation = self._rotations.get(channel, 0)
        with Store.open(self._store_url(channel), create=True) as store:
            yield Cycles(self, config, store.cluster(CLUSTER))
        self._rotations[channel] = self.slurm.rotation

    @contextmanager
    def daemon(self, channel: str, poll_seconds: int) -> Iterator[SteeringDaemon]:
        """Starts the daemon as a process, waits for its first cycle, and kills it in the end.

        Raises:
            TestbedError: it does not run.
        """
        config_file = self._config_file(channel, poll_seconds)
        log = self.cluster.directory / "log" / "shapleyprio.log"
        with SteeringDaemon(self.cluster, config_file, log) as daemon:
            began = time.time()
            url = self._store_url(channel)

            def succeeded() -> bool:
                daemon.check()
                with Store.open(url) as store, store.cluster(CLUSTER).reading() as view:
                    last = view.history.last_cycle(outcome="ok")
                return last is not None and last.started >= int(began)

            self.cluster.wait_until(
                succeeded,
                real_seconds=PATIENCE_SECONDS,
                what="the first cycle of the daemon",
            )
            yield daemon
            daemon.end()

    def _store_url(self, channel: str) -> str:
        """Returns a channel's own store, or each cycle would check what another channel left."""
        return f"sqlite:///{self.cluster.directory / channel}.db"

    def _config_file(self, channel: str, poll_seconds: int = 30, table: Path | None = None) -> Path:
        lines = [
            f'[slurm]\ncluster = "{CLUSTER}"\ntimeout = "{COMMAND_SECONDS}s"',
            f'[push]\nchannel = "{channel}"',
            # one user has submitted all
            f"most_writes = {MOST_WRITES}\nmost_raises_of_user = {MOST_WRITES}",
            *([f'table = "{table}"'] if table else []),
            f'[service]\npoll_interval = "{poll_seconds}s"',
            f'[store]\nurl = "{self._store_url(channel)}"',
            '[metrics]\naddress = "off"',
        ]
        for name, node in NODES.items():
            lines.append(f'[[organization]]\nname = "{name}"\naccounts = ["{name}"]')
            lines.append(f'nodes = ["{node}"]\nqos = "{name}"')
        file = self.cluster.directory / "shapleyprio.toml"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file


class Cycles:
    """Cycles over a queue; the first ones bring all priorities to where they are to be.

    Args:
        queue: full.
        config: of the daemon.
        store: where everything is kept.

    Attributes:
        writes: how many a change of the order takes.
        writes_at_once: how many of them the cycle makes that finds the order changed.
        first_seconds: how long each of the first cycles took.
        points: organization -> points after the last cycle.
    """

    def __init__(self, queue: Queue, config: Config, store: ClusterStore) -> None:
        self.writes = queue.pending if CHANNELS[config.push.channel].per_job else len(NODES)
        self.writes_at_once = min(self.writes, config.push.most_writes)
        self.first_seconds: list[float] = []
        self.points: dict[str, int] = {}
        self._slurm = queue.slurm
        self._store = store
        self._cycle = Cycle(config, self._slurm, store)
        self.finish(self.first_seconds)

    def unchanged(self) -> CycleReport:
        """Runs a cycle that finds the order as it was."""
        return self._run(writes=0)

    def changed(self) -> CycleReport:
        """Runs a cycle in which every organization changes its rank.

        If it leaves writes to the next, the ranks are then as they were before: to `finish` takes
        no more writes than it made.
        """
        self._slurm.rotation += 1
        report = self._run(writes=self.writes_at_once)
        if report.plan.postponed:
            self._slurm.rotation -= 1
        return report

    def finish(self, seconds: list[float] | None = None) -> None:
        """Runs cycles until there is nothing left to write and nobody left to touch.

        Args:
            seconds: gets how long each one took, but for the last.
        """
        while True:
            began = time.monotonic()
            report = self._cycle.run()
            self.points = {row.organization: row.priority for row in report.ranked.standings}
            if not report.plan.pushes and not report.touched:
                return
            if seconds is not None:
                seconds.append(time.monotonic() - began)

    def put_back(self) -> None:
        """Puts back what was found before the first cycle."""
        roll_back(self._store, self._slurm)

    def _run(self, *, writes: int) -> CycleReport:
        report = self._cycle.run()
        if report.pushed.applied != writes:
            raise SlurmError(
                f"the cycle wrote {report.pushed.applied} priorities instead of {writes}"
            )
        return report


@contextmanager
def full_queue(directory: Path, pending: int, progress: Callable[[int], None]) -> Iterator[Queue]:
    """Boots a cluster with busy nodes and so many waiting jobs; stops it in the end.

    Args:
        directory: for the whole state, new or empty.
        pending: jobs.
        progress: called with how many are submitted.

    Raises:
        SlurmUnavailableHere: this machine cannot have a private Slurm.
        TestbedError: it can, but something did not work.
    """
    most = {"MaxJobCount": str(pending + MOST_OTHER_JOBS)}
    spec = ClusterSpec(
        name=CLUSTER,
        partitions={organization: (node,) for organization, node in NODES.items()},
        cpus_per_node=PROCESSORS_A_NODE,
        extra=SETTINGS | most | (LARGE_SETTINGS if pending > MOST_SUBMITTED else {}),
    )
    cluster = PrivateSlurm(directory, spec)
    try:
        with cluster:
            cluster.add_accounts(dict.fromkeys(NODES))
            cluster.add_qos(list(NODES))
            queue = Queue(cluster, pending)
            queue.fill(progress)
            yield queue
    finally:  # on an overloaded machine the cluster's guard may have been given up
        kill_leftovers(cluster.directory)
