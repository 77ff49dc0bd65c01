"""One way to play with a Slurm, simulated or real, so that both answer to one specification."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from threading import Timer
from types import MappingProxyType
from typing import Protocol

from shapleyprio.lab.simulated import DaemonName, SimulatedSlurm, SimulatedSpec
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.lab.testbed.machine import TestbedError
from shapleyprio.slurm.adapters import connect
from shapleyprio.slurm.layout import PrioritySettings, Reservation
from shapleyprio.slurm.port import Connection, Slurm

CLUSTER = "contract"
PARTITIONS = MappingProxyType({"pa": ("a1", "a2"), "pb": ("b1", "b2")})
REAL_ADAPTERS = ("command_line", "pyslurm")
NODES = ("a1", "a2", "b1", "b2")
CPUS_PER_NODE = 4
ACCOUNTS = MappingProxyType(
    {"physics": None, "biology": None, "particles": "physics", "quarks": "particles"}
)
BASE_PRIORITY = 1_000_000
QOS_WEIGHT = 100_000
CALC_PERIOD_SECONDS = 60
SPEED = 60
MIDWAY_SECONDS = 0.2  # real ones, in which slurmctld makes some hundred writes
PATIENCE_SECONDS = 7200  # of the cluster's clock


class Harness(Protocol):
    """A cluster of four nodes that nobody else uses, and what users and admins do to it.

    Attributes:
        slack_seconds: how much longer than asked a job may take.
        user: who submits.
    """

    slack_seconds: int
    user: str

    @property
    def slurm(self) -> Slurm: ...

    def submit(
        self,
        account: str,
        seconds: int,
        *,
        processors: int = 1,
        partition: str = "all",
        nice: int = 0,
        array: int = 0,
        at_once: int | None = None,
        begin_after: int = 0,
        minutes: int | None = None,
        after: tuple[int, ...] = (),
    ) -> int:
        """Submit a job.

        Args:
            account: of the job.
            seconds: that it takes.
            processors: that it asks for.
            partition: where it is to run.
            nice: of the job.
            array: its tasks.
            at_once: how many of them may run at the same time.
            begin_after: seconds from now before which it may not start.
            minutes: its time limit, 0 for none.
            after: jobs that have to end before.
        """
        ...

    def submit_that_goes_on(self, account: str) -> int:
        """Submit a job that cancels itself at once, and goes on until KillWait is over."""
        ...

    def now(self) -> int: ...
    def wait(self, seconds: int) -> None: ...
    def until(self, predicate: Callable[[], bool], what: str) -> None: ...
    def hold(self, job_id: int) -> None: ...
    def release(self, job_id: int) -> None: ...
    def requeue(self, job_id: int) -> None: ...
    def suspend(self, job_id: int) -> None: ...
    def resume(self, job_id: int) -> None: ...
    def cancel(self, job_id: int) -> None: ...
    def set_nice(self, job_id: int, nice: int) -> None: ...
    def fix_priority(self, job_id: int, priority: int) -> None: ...
    def set_account(self, job_id: int, account: str) -> None: ...
    def set_user_priority(self, account: str, user: str, priority: int) -> None: ...
    def set_most_jobs(self, account: str, jobs: int | None) -> None: ...
    def reserve(self, reservation: Reservation) -> None: ...
    def drain(self, node: str) -> None: ...
    def undrain(self, node: str) -> None: ...
    def take_down(self, daemon: DaemonName) -> None: ...
    def bring_up(self, daemon: DaemonName) -> None: ...

    def take_down_midway(self) -> None:
        """Take slurmctld down while the next writes are under way, of which there are hundreds."""
        ...

    def clear(self) -> None: ...


class SimulatedHarness:
    """The simulated cluster; it is made anew for every test."""

    slack_seconds = 0
    user = "user"

    def __init__(self) -> None:
        self.slurm = SimulatedSlurm(
            SimulatedSpec(
                cluster=CLUSTER,
                nodes=dict.fromkeys(NODES, CPUS_PER_NODE),
                partitions={**PARTITIONS, "all": NODES},
                accounts=ACCOUNTS,
                settings=PrioritySettings(
                    type="priority/multifactor",
                    weights={
                        "Age": 0,
                        "Assoc": 1,
                        "Partition": BASE_PRIORITY,
                        "QOS": QOS_WEIGHT,
                    },
                    flags=frozenset({"NO_NORMAL_ASSOC"}),
                    calc_period_seconds=CALC_PERIOD_SECONDS,
                    max_age_seconds=86_400,
                    site_factor_plugin="",
                ),
            ),
            now=1_780_000_000,
            accounting_delay=3,
        )
        self.hold = self.slurm.hold
        self.release = self.slurm.release
        self.requeue = self.slurm.requeue
        self.suspend = self.slurm.suspend
        self.resume = self.slurm.resume
        self.cancel = self.slurm.cancel
        self.set_nice = self.slurm.set_nice
        self.fix_priority = self.slurm.fix_priority
        self.set_account = self.slurm.set_account
        self.set_user_priority = self.slurm.set_user_priority
        self.set_most_jobs = self.slurm.set_most_jobs
        self.reserve = self.slurm.reserved.append
        self.drain = self.slurm.drain
        self.undrain = self.slurm.undrain
        self.take_down = self.slurm.take_down
        self.bring_up = self.slurm.bring_up

    def submit(
        self,
        account: str,
        seconds: int,
        *,
        processors: int = 1,
        partition: str = "all",
        nice: int = 0,
        array: int = 0,
        at_once: int | None = None,
        begin_after: int = 0,
        minutes: int | None = None,
        after: tuple[int, ...] = (),
    ) -> int:
        return self.slurm.submit(
            account,
            processing_time=seconds,
            processors=processors,
            partition=partition,
            nice=nice,
            array=array,
            at_once=at_once,
            begin=self.slurm.now + begin_after if begin_after else None,
            limit=minutes * 60 if minutes else None,
            after=after,
        )

    def submit_that_goes_on(self, account: str) -> int:
        job = self.slurm.submit(account, processing_time=1)
        self.slurm.works_on[job] = self.slurm.layout().kill_wait_seconds
        return job

    def take_down_midway(self) -> None:
        self.slurm.stop_write_after(100)

    def now(self) -> int:
        return self.slurm.now

    def wait(self, seconds: int) -> None:
        self.slurm.advance(self.slurm.now + seconds)

    def until(self, predicate: Callable[[], bool], what: str) -> None:
        for _ in range(PATIENCE_SECONDS):
            if predicate():
                return
            self.wait(1)
        raise AssertionError(f"waited in vain for {what}")

    def clear(self) -> None:
        """There is nothing to clear in a cluster that is thrown away."""


class RealHarness:
    """A private real Slurm on an accelerated clock, through one of the adapters."""

    slack_seconds = 5 * SPEED
    spec = ClusterSpec(
        name=CLUSTER,
        partitions=PARTITIONS,
        cpus_per_node=CPUS_PER_NODE,
        speed=SPEED,
        extra={
            "AccountingStorageEnforce": "associations,limits",
            "PriorityFlags": "NO_NORMAL_ASSOC",
            "PriorityWeightAge": "0",
            "PriorityWeightAssoc": "1",
            "PriorityWeightPartition": str(BASE_PRIORITY),
            "PriorityWeightQOS": str(QOS_WEIGHT),
            "PriorityCalcPeriod": str(CALC_PERIOD_SECONDS // 60),
        },
    )

    def __init__(self, cluster: PrivateSlurm, adapter: str) -> None:
        self._cluster = cluster
        self._down: set[DaemonName] = set()
        self._drained: set[str] = set()
        self._reserved: list[str] = []
        self._names = (f"{adapter}-{number}" for number in count())
        self.user = cluster.paths.user
        connection = Connection(environment=cluster.environment, timeout_seconds=20)
        self.slurm = connect(connection, adapter)

    def submit(
        self,
        account: str,
        seconds: int,
        *,
        processors: int = 1,
        partition: str = "all",
        nice: int = 0,
        array: int = 0,
        at_once: int | None = None,
        begin_after: int = 0,
        minutes: int | None = None,
        after: tuple[int, ...] = (),
    ) -> int:
        throttle = f"%{at_once}" if at_once else ""
        return self._cluster.submit(
            account,
            seconds,
            processors=processors,
            partition=partition,
            nice=nice or None,
            array=f"0-{array - 1}{throttle}" if array else None,
            begin=f"now+{begin_after}" if begin_after else None,
            job_name=next(self._names),
            time=minutes,
            dependency=f"afterany:{':'.join(map(str, after))}" if after else None,
        )

    def submit_that_goes_on(self, account: str) -> int:
        script = "trap '' TERM CONT; scancel $SLURM_JOB_ID; while :; do :; done"
        words = (f"--account={account}", "--ntasks=1", "--output=/dev/null")
        return int(self._cluster.run("sbatch", "--parsable", *words, f"--wrap={script}"))

    def now(self) -> int:
        return self._cluster.now()

    def wait(self, seconds: int) -> None:
        until = self._cluster.now() + seconds
        self.until(lambda: self._cluster.now() >= until, f"{seconds} s to pass")

    def until(self, predicate: Callable[[], bool], what: str) -> None:
        self._cluster.wait_until(predicate, real_seconds=PATIENCE_SECONDS / SPEED, what=what)

    def hold(self, job_id: int) -> None:
        self._cluster.run("scontrol", "hold", str(job_id))

    def release(self, job_id: int) -> None:
        self._cluster.run("scontrol", "release", str(job_id))

    def requeue(self, job_id: int) -> None:
        """Requeue a job and let it start again at once."""
        self._cluster.run("scontrol", "requeue", str(job_id))
        self.until(lambda: self._cluster.starts_again(job_id), "the requeued job to be updated")

    def suspend(self, job_id: int) -> None:
        self._cluster.run("scontrol", "suspend", str(job_id))

    def resume(self, job_id: int) -> None:
        self._cluster.run("scontrol", "resume", str(job_id))

    def cancel(self, job_id: int) -> None:
        self._cluster.run("scancel", str(job_id))

    def set_nice(self, job_id: int, nice: int) -> None:
        self._cluster.run("scontrol", "update", f"JobId={job_id}", f"Nice={nice}")

    def fix_priority(self, job_id: int, priority: int) -> None:
        self._cluster.run("scontrol", "update", f"JobId={job_id}", f"Priority={priority}")

    def set_account(self, job_id: int, account: str) -> None:
        self._cluster.run("scontrol", "update", f"JobId={job_id}", f"Account={account}")

    def set_user_priority(self, account: str, user: str, priority: int) -> None:
        where = ("where", f"name={user}", f"account={account}")
        self._cluster.run("sacctmgr", "-i", "modify", "user", *where, "set", f"priority={priority}")

    def set_most_jobs(self, account: str, jobs: int | None) -> None:
        where = ("where", f"name={account}", f"cluster={CLUSTER}")
        most = -1 if jobs is None else jobs
        self._cluster.run("sacctmgr", "-i", "modify", "account", *where, "set", f"GrpJobs={most}")

    def reserve(self, reservation: Reservation) -> None:
        """Reserve nodes for a maintenance."""
        name = f"ReservationName={reservation.name}"
        begin, end = (
            time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(second))
            for second in (reservation.begin, reservation.end)
        )
        nodes = f"Nodes={','.join(reservation.nodes)}"
        when = (f"StartTime={begin}", f"EndTime={end}")
        self._cluster.run(
            "scontrol", "create", "reservation", name, nodes, *when, "Users=root", "Flags=MAINT"
        )
        self._reserved.append(reservation.name)

    def drain(self, node: str) -> None:
        self._cluster.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
        self._drained.add(node)

    def undrain(self, node: str) -> None:
        self._cluster.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self._drained.discard(node)

    def take_down(self, daemon: DaemonName) -> None:
        if daemon == "slurmctld":
            self.until(self._jobs_are_saved, "slurmctld to save its jobs")
        self._cluster.kill(daemon)
        self._down.add(daemon)

    def take_down_midway(self) -> None:
        self.until(self._jobs_are_saved, "slurmctld to save its jobs")
        self._down.add("slurmctld")
        Timer(MIDWAY_SECONDS, self._cluster.kill, ("slurmctld",)).start()

    def bring_up(self, daemon: DaemonName) -> None:
        self._cluster.restart(daemon)
        self._down.discard(daemon)

    def clear(self) -> None:
        """Leave an empty cluster to the next test, whatever became of this one."""
        for daemon in tuple(self._down):
            self.bring_up(daemon)
        for node in tuple(self._drained):
            self.undrain(node)
        while self._reserved:
            name = self._reserved.pop()
            self._cluster.run("scontrol", "delete", f"ReservationName={name}")
        self._cluster.wait_until(
            self._empty, real_seconds=PATIENCE_SECONDS / SPEED, what="an empty cluster"
        )

    def _jobs_are_saved(self) -> bool:
        """Whether slurmctld would know its jobs again: it saves new ones only after a moment."""
        saved = (self._cluster.directory / "state" / "job_state").read_bytes()
        names = self._cluster.run("squeue", "-h", "-o", "%j").split()
        return all(name.encode() in saved for name in names)

    def _empty(self) -> bool:
        with suppress(TestbedError):  # a daemon that has just come back may need another moment
            self._cluster.run("scancel", f"--user={self.user}")
            return not self._cluster.run("squeue", "-h")
        return False
