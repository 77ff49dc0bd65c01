"""Three organizations that share a private Slurm, and shapleyprio as their admin runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shapleyprio.config import load_config
from shapleyprio.daemon.steering.cycle import Cycle
from shapleyprio.fairness.rule import by_score
from shapleyprio.lab.testbed import machine
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.lab.testbed.detached import last_words
from shapleyprio.lab.testbed.machine import TestbedError
from shapleyprio.slurm.adapters import connect
from shapleyprio.slurm.port import Connection, PendingJob
from shapleyprio.store import CycleRow, Push, Store, View
from tests.end_to_end import forked

CLUSTER = "e2e"
STORE = "store.db"
NewStore = Callable[[], str | None]
"""Makes a database on a server, and returns its URL."""

MEMBERS = ("alpha", "beta", "gamma")
GUESTS = "guests"
"""An account that no organization claims."""

BELOW = MappingProxyType({"alpha-lab": "alpha", "alpha-desk": "alpha-lab"})
"""Accounts of alpha, each below the one before."""

QOS_PRIORITY = 5
QOS = MappingProxyType(dict.fromkeys(MEMBERS, QOS_PRIORITY))
"""A QOS of every organization's own, with the priority that their admin has chosen."""

NODES = MappingProxyType({"alpha": ("a1",), "beta": ("b1",), "gamma": ("c1",)})
CPUS_PER_NODE = 2
ALL_CPUS = CPUS_PER_NODE * len(MEMBERS)
BASE_PRIORITY = 1_000_000
SETTINGS = MappingProxyType(
    {
        "PriorityWeightAge": "0",
        "PriorityWeightPartition": str(BASE_PRIORITY),
        "PriorityWeightQOS": "1",
        "PriorityWeightAssoc": "1",
        "PriorityFlags": "NO_NORMAL_QOS,NO_NORMAL_ASSOC",
    }
)
"""Priorities that stand still as long as nobody writes any, and well above the floor."""

PATIENCE_SECONDS = 120.0  # real ones; three clusters beside each other share two cores in CI
COMMAND_SECONDS = 60.0  # real ones
LEASE_SECONDS = 4  # real ones, for which a test waits after it has killed a daemon


def spec(speed: int) -> ClusterSpec:
    """A cluster on which every organization owns one node and the partition of its name."""
    return ClusterSpec(
        name=CLUSTER,
        partitions=NODES,
        cpus_per_node=CPUS_PER_NODE,
        speed=speed,
        extra=SETTINGS,
    )


@dataclass(frozen=True, slots=True)
class Found:
    """What stands in Slurm at one job; the site factor is known of some pending jobs only."""

    nice: int
    priority: int
    site_factor: int | None


@dataclass(frozen=True, slots=True)
class RunningDaemon:
    """`shapleyprio daemon` as a process of its own."""

    process: BaseProcess
    log_file: Path

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def end(self) -> int | None:
        """SIGTERM, as systemd does it; returns the exit code, None if it does not end."""
        self.process.terminate()
        self.process.join(PATIENCE_SECONDS)
        return self.process.exitcode


class Consortium:
    """The cluster, a configuration of our own and a store of our own.

    Args:
        cluster: running, with the accounts of `MEMBERS` and `GUESTS`.
        directory: for configuration and logs.
        store: URL of a database without tables; without it, the store is made in the directory.
    """

    def __init__(self, cluster: PrivateSlurm, directory: Path, store: str | None = None) -> None:
        self.cluster = cluster
        self.directory = directory
        self._store = store
        self.config_file = directory / "shapleyprio.toml"
        self.since = cluster.now()
        self._held = ExitStack()
        self.metrics_port = self._held.enter_context(machine.reserved_ports(1))
        self._watched: Store | None = None
        self.slurm = connect(
            Connection(environment=cluster.environment, timeout_seconds=COMMAND_SECONDS)
        )
        self._daemons: list[RunningDaemon] = []
        self.logs: list[Path] = []

    # -- configuration

    def configure(
        self,
        *,
        organizations: Sequence[str] = MEMBERS,
        rule: str = "directcontr",
        channel: str = "site_factor",
        influence: int | str = "strict",
        poll_seconds: int = 2,
        overlap: str = "1h",
        guarantee: str = "off",
        guarantee_ahead: bool = False,
        store: str = STORE,
        journal: Path | None = None,
        file: Path | None = None,
        parents: Mapping[str, str] | None = None,
    ) -> None:
        """Write the configuration anew; ties go to the organization listed first."""
        speed = self.cluster.spec.speed
        lines = [
            "[slurm]",
            f'timeout = "{30 * speed}s"',  # it runs on the cluster's clock
            "[fairness]",
            f'rule = "{rule}"',
            f'guarantee = "{guarantee}"',
            f"guarantee_ahead = {json.dumps(guarantee_ahead)}",
            f'since = "{datetime.fromtimestamp(self.since, UTC).isoformat()}"',
            "[push]",
            f'channel = "{channel}"',
            f"influence = {json.dumps(influence)}",
            "[service]",
            f'poll_interval = "{poll_seconds}s"',
            f'new_jobs_interval = "{5 * speed}s"',
            f'lease = "{LEASE_SECONDS * speed}s"',
            f'overlap = "{overlap}"',
            "[store]",
            f'url = "{self.url(store)}"',
            *([] if journal is None else [f'journal = "{journal}"']),
            "[metrics]",
            f'address = "127.0.0.1:{self.metrics_port}"',
            "[drift]",
            'interval = "off"',  # on a fast clock, each daemon would start a replay at once
        ]
        for name in organizations:
            lines += ["[[organization]]", f'name = "{name}"', f'accounts = ["{name}"]']
            lines += [f'partitions = ["{name}"]', f'qos = "{name}"']
            lines += [f'parent = "{parents[name]}"'] if parents and name in parents else []
        (file or self.config_file).write_text("\n".join(lines) + "\n")

    def url(self, store: str = STORE) -> str:
        in_file = f"sqlite:///{self.directory / store}"
        return self._store or in_file if store == STORE else in_file

    # -- shapleyprio

    def run(self, *arguments: str, config: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of shapleyprio to its end."""
        words = (*arguments, "--config", str(config or self.config_file))
        return forked.run(words, self._environment(), timeout=COMMAND_SECONDS)

    def succeed(self, *arguments: str) -> str:
        """Run a command that must succeed and return what it printed."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{done.stderr}{self.cluster.last_words()}"
        return done.stdout

    def once(self) -> int:
        """One cycle; returns how many writes it made."""
        self.succeed("daemon", "--once")
        with self.reading() as view:
            last = view.history.last_cycle()
        assert last is not None
        assert last.outcome == "ok"
        return last.written

    @contextmanager
    def daemon(self, *options: str) -> Iterator[RunningDaemon]:
        """The daemon in the background; killed in the end if it still runs."""
        daemon = self.start_daemon(*options)
        try:
            yield daemon
        finally:
            daemon.kill()

    def start_daemon(self, *options: str) -> RunningDaemon:
        if self._watched is None:  # we look into it while the daemon starts, and time and again
            self._watched = self._held.enter_context(Store.open(self.url(), create=True))
        log_file = self.directory / f"daemon-{len(self._daemons)}.log"
        log_file.touch()  # for whoever is quicker than the daemon
        words = ("daemon", "--config", str(self.config_file), *options)
        process = forked.start(words, self._environment(), log_file.with_suffix(".out"), log_file)
        self.logs.append(log_file)
        self._daemons.append(RunningDaemon(process, log_file))
        return self._daemons[-1]

    def close(self) -> None:
        """Kill daemons that are left, and let go of what was held for them."""
        for daemon in self._daemons:
            daemon.kill()
        self._held.close()

    def await_cycles(self, count: int = 2) -> None:
        """Wait for so many more good cycles; from the second on they began after this call."""
        before = self.good_cycles()
        self.until(
            lambda: self.good_cycles() >= before + count, what=f"{count} cycles of the daemon"
        )

    def good_cycles(self) -> int:
        """How many cycles succeeded so far."""
        return sum(row.outcome == "ok" for row in self.cycles())

    def metrics(self) -> str:
        """What Prometheus would read."""
        return self._served("metrics")

    def page(self) -> dict[str, Any]:
        """What the status page shows, for programs; it may be two seconds old."""
        found: dict[str, Any] = json.loads(self._served("api/status"))
        return found

    def _served(self, path: str) -> str:
        address = f"http://127.0.0.1:{self.metrics_port}/{path}"
        with urllib.request.urlopen(address, timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    # -- the store

    @contextmanager
    def reading(self, store: str = STORE) -> Iterator[View]:
        known = store == STORE and self._watched
        opened = nullcontext(known) if known else Store.open(self.url(store))
        with opened as found, found.cluster(CLUSTER).reading() as view:
            yield view

    def has_store(self) -> bool:
        """Whether there are tables, or a file of the store, or one beside it."""
        store = Store.open_existing(self.url())
        if store is not None:
            store.close()
        return store is not None or any(self.directory.glob(f"{STORE}*"))

    def points(self, store: str = STORE) -> dict[str, int]:
        """Organization -> priority points after the last cycle."""
        with self.reading(store) as view:
            return {row.organization: row.priority for row in view.history.latest_standings()}

    def order(self, store: str = STORE) -> list[str]:
        """The organizations after the last cycle, the first to be served first."""
        return by_score(self.points(store))

    def pushes(self) -> list[Push]:
        """Every write there was, the oldest first."""
        with self.reading() as view:
            return view.pushes.latest(limit=1_000_000)[::-1]

    def cycles(self) -> list[CycleRow]:
        """Every cycle there was, the oldest first."""
        with self.reading() as view:
            return view.history.cycles(limit=1_000_000)[::-1]

    def open_pushes(self) -> int:
        """Writes of which it is not known yet what became of them."""
        with self.reading() as view:
            return len(view.pushes.open_pushes())

    def await_push(self) -> None:
        """Wait for a push to begin; it may be over before it is seen."""
        missed = self.good_cycles() + 3 if self.has_store() else 3

        def has_begun() -> bool:
            return self.open_pushes() > 0 or self.good_cycles() >= missed

        self.until(has_begun, what="a push to begin")

    def from_scratch(self, config: Path | None = None) -> str:
        """Read all of accounting into a new store, write nothing; returns the store's name."""
        name = "from-scratch.db"
        (self.directory / name).unlink(missing_ok=True)
        with Store.open(self.url(name), create=True) as store:
            loaded = load_config(config or self.config_file)
            Cycle(loaded, self.slurm, store.cluster(CLUSTER)).run(dry_run=True)
        return name

    # -- the cluster

    def await_settled(self) -> None:
        """Wait until accounting knows all ends of jobs."""

        def settled() -> bool:
            rows = self.accounted("State", "End")
            queue = self.cluster.run("squeue", "-h", "-o", "%T").split()
            # a completing job has ended for accounting, though the queue still lists it
            without_end = len(queue) - queue.count("COMPLETING")
            backlog = self.slurm.controller().accounting_backlog
            unfinished = [state for state, end in rows if state == "RUNNING" or not end.isdigit()]
            return backlog == 0 and len(unfinished) == without_end

        self.until(settled, what="accounting to know all ends")

    def until(self, predicate: Callable[[], bool], *, what: str) -> None:
        """Wait until something is true; in vain, the daemons' logs say why."""
        try:
            self.cluster.wait_until(predicate, real_seconds=PATIENCE_SECONDS, what=what)
        except TestbedError as error:
            logged = [f"{log}: {last_words(log)}" for log in self.logs if log.exists()]
            raise TestbedError("\n".join([str(error), *logged])) from error

    def wait(self, seconds: float) -> None:
        """Let cluster seconds pass, on a clock that is slow while Slurm computes."""
        clock = self.cluster.clock
        over = clock.now() + seconds
        while (left := clock.real_seconds_until(over)) > 0:
            time.sleep(left)

    def waiting(self) -> dict[int, PendingJob]:
        """Job id -> the pending job."""
        return {job.job_id: job for job in self.slurm.pending().jobs}

    def state(self, job: int) -> str:
        return self.cluster.run("squeue", "-h", "-j", str(job), "-o", "%T", check=False).strip()

    def occupy(self, processors: int = ALL_CPUS) -> int:
        """Let a guest take processors for an hour, so that others wait; returns its job."""
        job = self.cluster.submit(GUESTS, 3600, processors=processors)
        self.await_start(job)
        return job

    def await_start(self, job: int) -> None:
        self.until(lambda: self.state(job) == "RUNNING", what=f"job {job} to start")

    def cancel(self, *jobs: int) -> None:
        self.cluster.run("scancel", *map(str, jobs))

    def set_nice(self, job: int, nice: int) -> None:
        """What a user does."""
        self.cluster.run("scontrol", "update", f"JobId={job}", f"Nice={nice}")

    def requeue(self, job: int) -> None:
        """Let a running job wait again; Slurm keeps it from starting for a while."""
        self.cluster.run("scontrol", "requeue", str(job))

    def let_start(self, job: int) -> None:
        """Let a requeued job start as soon as there is room."""
        self.until(
            lambda: self.cluster.starts_again(job), what=f"the requeued job {job} to be updated"
        )

    def accounted(self, *fields: str) -> list[list[str]]:
        """Fields of every row of accounting since this consortium began, times in seconds."""
        sacct = ("env", "SLURM_TIME_FORMAT=%s", "sacct", "-nPXDa", "-S", f"uts{self.since}")
        printed = self.cluster.run(*sacct, "-o", ",".join(fields))
        return [line.split("|") for line in printed.splitlines()]

    def await_accounted(self, *jobs: int) -> None:
        names = set(map(str, jobs))
        self.until(
            lambda: names <= {row[0] for row in self.accounted("JobIDRaw")},
            what=f"accounting to know {', '.join(sorted(names))}",
        )

    def starts(self, jobs: Sequence[int]) -> list[int]:
        """The jobs in the order in which they started, as soon as accounting knows of all."""
        begun: dict[int, int] = {}

        def all_known() -> bool:
            rows = self.accounted("JobIDRaw", "Start")
            begun.update(
                {
                    int(job): int(start)
                    for job, start in rows
                    if start.isdigit() and int(job) in jobs
                }
            )
            return len(begun) == len(jobs)

        self.until(all_known, what="accounting to know all starts")
        return sorted(begun, key=lambda job: begun[job])

    def found(self) -> dict[str, Found]:
        """What stands at every job in the queue, waiting or running, by label."""
        factors = {str(job.job_id): job.site_factor for job in self.waiting().values()}
        found = {}
        for line in self.cluster.run("squeue", "-h", "-o", "%A|%i|%y|%Q").splitlines():
            job_id, label, nice, priority = line.split("|")
            found[label] = Found(int(nice), int(priority), factors.get(job_id))
        return found

    def _environment(self) -> dict[str, str]:
        return {**self.cluster.environment, "COLUMNS": "250"}


def clear(cluster: PrivateSlurm) -> None:
    """Cancel every job and wait until they are gone."""

    def empty() -> bool:
        with suppress(TestbedError):  # a daemon that just came back needs another moment
            cluster.run("scancel", f"--user={cluster.paths.user}")
            return not cluster.run("squeue", "-h").strip()
        return False

    cluster.wait_until(empty, real_seconds=PATIENCE_SECONDS, what="an empty cluster")
