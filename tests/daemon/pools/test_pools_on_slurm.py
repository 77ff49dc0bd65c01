"""A pool of two real clusters with one slurmdbd and a PostgreSQL: lend, cut, heal, kill, split."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url

from shapleyprio.daemon.answering.status import Status, read_status
from shapleyprio.fairness.pool import PartState, ledger_of
from shapleyprio.fairness.worth import worth
from shapleyprio.lab.testbed import machine
from shapleyprio.lab.testbed.clock import ClusterClock
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterPaths, ClusterSpec, write_files
from shapleyprio.lab.testbed.processes import Guard, wait_until
from shapleyprio.store import Store, StoreError
from tests.daemon.several_daemons import Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import ExitStack

    from tests.store.servers import Databases

MEMBERS = ("beta", "alpha")
"""Ties go to beta."""

GUESTS = "guests"
CPUS = 2
GPUS = 2
ON_GPUS = (f"--gres=gpu:{GPUS}",)
PATIENCE_SECONDS = 120.0
STALE_SECONDS = 5
SOME_CYCLES = 8
SPEC = ClusterSpec(
    name="north",
    partitions={"alpha": ("a1",), "beta": ("b1",)},
    cpus_per_node=CPUS,
    gres={"b1": f"gpu:{GPUS}"},
    extra={
        "PriorityWeightAge": "0",
        "PriorityWeightPartition": "1000000",
    },
)


class SlurmBeside(PrivateSlurm):
    """A cluster that keeps its accounts with another one's slurmdbd.

    Args:
        directory: its own.
        first: the other one, running.
    """

    def __init__(self, directory: Path, first: PrivateSlurm) -> None:
        accounting = {
            "AccountingStoragePort": str(first.paths.base_port),
            "AccountingStoragePass": str(first.paths.munge_socket),
            "AuthInfo": f"socket={first.paths.munge_socket}",
        }
        super().__init__(directory, replace(SPEC, name="south", extra={**SPEC.extra, **accounting}))
        self._first = first

    def _start_accounting(self, life: ExitStack) -> None:
        paths = self.paths = ClusterPaths(
            directory=self.directory,
            base_port=life.enter_context(machine.reserved_ports(self.spec.port_count)),
            user=machine.user_name(),
            host=machine.loopback_host_name(),
        )
        write_files(self.spec, paths)
        base = {**self._first.environment, "SLURM_CONF": str(paths.slurm_conf)}
        self.clock = ClusterClock(self.directory / "run" / "clock", speed=1)
        life.callback(self._end_everything, Guard(self.directory, base))
        self.environment = base


TOGETHER = '[[pool]]\nname = "all"\nclusters = ["north", "south"]'
SPLIT = """
[[pool]]
name = "cpu"
clusters = ["north"]

[[pool]]
name = "gpu"
clusters = ["north"]
partitions = ["beta"]
weight = "gres/gpu"
"""


@dataclass
class Site:
    """A cluster with its daemon, which reaches the database by a wire of its own."""

    slurm: PrivateSlurm
    url: str
    wire: Wire
    through: str
    since: int
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.slurm.spec.name

    @property
    def log(self) -> Path:
        return self.slurm.directory / "daemon.log"

    @property
    def programs(self) -> Path:
        """Slurm's commands, each of which notes its arguments in a file."""
        folder = self.slurm.directory / "noting"
        if not folder.exists():
            folder.mkdir()
            found = Path(shutil.which("sacct") or "").parent
            for command in ("sacct", "sacctmgr", "scontrol", "sdiag", "sprio", "squeue"):
                (folder / command).write_text(
                    f'#!/bin/sh\necho "$*" >> {folder}/{command}.calls\n'
                    f'exec {found / command} "$@"\n'
                )
                (folder / command).chmod(0o755)
        return folder

    def asked(self) -> int:
        """How often accounting was asked for what happened since some time."""
        calls = (self.programs / "sacct.calls").read_text().splitlines()
        return sum(" -S " in call for call in calls)

    def start(self, pools: str = TOGETHER) -> None:
        config = self.slurm.directory / "shapleyprio.toml"
        lines = [
            f'[fairness]\nrule = "directcontr"\nsince = "{_instant(self.since)}"',
            f'[slurm]\nbin_directory = "{self.programs}"',
            f'[store]\nurl = "{self.through}"',
            '[service]\npoll_interval = "1s"\nlease = "4s"',
            '[metrics]\naddress = "off"\n[drift]\ninterval = "off"',
            f'[consortium]\nname = "North and South"\nstale_after = "{STALE_SECONDS}s"',
            pools,
        ]
        for name in MEMBERS:
            lines += [f'[[organization]]\nname = "{name}"\naccounts = ["{name}"]']
            lines += [f'partitions = ["{name}"]']
        config.write_text("\n".join(lines) + "\n")
        imports = os.pathsep.join(path for path in sys.path if path)
        with self.log.open("ab") as log:
            daemon = subprocess.Popen(
                [sys.executable, "-m", "shapleyprio", "daemon", "--config", str(config)],
                env={**self.slurm.environment, "PYTHONPATH": imports},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.daemons.append(daemon)

    def kill(self) -> None:
        for daemon in self.daemons:
            if daemon.poll() is None:
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()

    def status(self, pool: str = "") -> Status:
        with Store.open(self.url) as store:
            return read_status(store.cluster(ledger_of(self.name, pool)))

    def states(self) -> list[PartState]:
        """How the other cluster counts; empty before the first cycle."""
        try:
            pool = self.status().pool
        except StoreError:
            return []
        return [] if pool is None else [part.state for part in pool.parts]

    def first(self, partition: str = "all") -> str:
        """Whose job that waits for a partition is the first; nobody's while there is no first."""
        asked = ("squeue", "-h", "-t", "PD", "-p", partition, "-o", "%Q %a")
        lines = self.slurm.run(*asked).splitlines()
        found = sorted((int(priority), account) for priority, account in map(str.split, lines))
        return found[-1][1] if len({priority for priority, _ in found}) > 1 else ""

    def work(self, account: str, partition: str, seconds: int, extra: Sequence[str] = ()) -> int:
        """Runs a job on one organization's node to its end; returns its number."""
        job = self.slurm.submit(account, seconds, processors=CPUS, partition=partition, extra=extra)
        self.until(
            lambda: not self.slurm.run("squeue", "-h", "-j", str(job), check=False).strip(),
            what=f"job {job} to end",
        )
        return job

    def occupy(self, partition: str, processors: int = CPUS, extra: Sequence[str] = ()) -> None:
        """Lets a guest take a partition, so that jobs that are submitted now wait."""
        job = self.slurm.submit(
            GUESTS, 3600, processors=processors, partition=partition, extra=extra
        )
        self.until(
            lambda: self.slurm.run("squeue", "-h", "-j", str(job), "-o", "%T").strip() == "RUNNING",
            what=f"job {job} to start",
        )

    def runs(self) -> list[tuple[str, str, int, int | None]]:
        """Account, node, start and end of what accounting knows of members' jobs."""
        printed = self.slurm.run(
            *("env", "SLURM_TIME_FORMAT=%s", "sacct", "-nPXDa", "-M", self.name),
            *("-S", f"uts{self.since}", "-o", "Account,NodeList,Start,End"),
        )
        rows = [line.split("|") for line in printed.splitlines()]
        return [
            (account, nodes, int(start), int(end) if end.isdigit() else None)
            for account, nodes, start, end in rows
            if account in MEMBERS and start.isdigit()
        ]

    def until(self, done: Callable[[], bool], *, what: str) -> None:
        try:
            wait_until(done, real_seconds=PATIENCE_SECONDS, what=what)
        except Exception as error:
            raise AssertionError(f"{error}; the daemon's log:\n{self.log.read_text()}") from error


def _instant(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()


def owed(sites: list[Site], t: int) -> int:
    """What alpha is owed at t by the definition, from Slurm's records of both clusters."""
    total = 0
    for site in sites:
        for account, nodes, start, end in site.runs():
            executors = {"a1": "alpha", "b1": "beta"}
            for node in ("a1", "b1") if nodes not in executors else (nodes,):
                gained = CPUS * worth(start, end, t)
                total += (executors[node] == "alpha") * gained - (account == "alpha") * gained
    return total


@contextmanager
def sites_of(databases: Databases, folder: Path, prepared: Path) -> Iterator[tuple[Site, Site]]:
    with (
        databases.made("postgresql") as url,
        PrivateSlurm(folder / "n", SPEC, prepared=prepared) as north,
        SlurmBeside(folder / "s", north) as south,
    ):
        Store.open(url, create=True).close()
        sites = []
        for slurm in (north, south):
            slurm.add_accounts(dict.fromkeys((*MEMBERS, GUESTS)))
            socket = slurm.directory / ".s.PGSQL.5432"
            wire = Wire(f"{make_url(url).query['host']}/{socket.name}", socket)
            through = make_url(url).set(query={"host": str(slurm.directory)})
            sites.append(
                Site(
                    slurm=slurm,
                    url=url,
                    wire=wire,
                    through=through.render_as_string(hide_password=False),
                    since=north.now(),
                )
            )
        try:
            for site in sites:
                site.start()
            yield sites[0], sites[1]
        finally:
            for site in sites:
                site.wire.mend()
                site.kill()


@pytest.mark.real_slurm
@pytest.mark.real_server
def test_who_lends_at_one_cluster_is_served_first_at_the_other_whatever_fails(
    databases: Databases, prepared_database: Path
) -> None:
    with (
        TemporaryDirectory(prefix="pool-", dir="/tmp") as folder,
        sites_of(databases, Path(folder), prepared_database) as (north, south),
    ):
        sites = [north, south]

        def exact() -> bool:
            """Whether both daemons have ranked alpha by what it is owed at both clusters."""
            for site in sites:
                status = site.status()
                rows = {row.organization: row.score for row in status.rows}
                if rows["alpha"] != owed(sites, status.cycle.t) or rows["beta"] != -rows["alpha"]:
                    return False
            return True

        north.until(lambda: north.states() == [PartState.CURRENT], what="the south to be there")
        south.until(lambda: south.states() == [PartState.CURRENT], what="the north to be there")
        south.occupy("all", processors=2 * CPUS)
        for account in ("alpha", "beta"):
            south.slurm.submit(account, 3600, processors=2 * CPUS)
        south.until(lambda: south.first() == "beta", what="a tie")

        north.work("beta", "alpha", 3)
        south.until(lambda: south.first() == "alpha", what="alpha to be first in the south")
        south.until(exact, what="the exact sums at both clusters")

        south.wire.cut()
        north.until(lambda: north.states() == [PartState.STALE], what="the south to be stale")
        assert "south is stale" in " ".join(_sentences(north))
        north.work("alpha", "beta", 2)
        assert south.first() == "alpha"  # what was written before stands
        south.wire.mend()
        north.until(lambda: north.states() == [PartState.CURRENT], what="the south to be back")
        south.until(exact, what="the exact sums after the cut")

        north.kill()
        north.work("beta", "alpha", 3)
        north.start()
        north.until(exact, what="the exact sums after the kill")
        south.until(lambda: south.first() == "alpha", what="alpha to be first again")

        south.kill()
        north.kill()
        north.start(SPLIT)
        lent = north.work("alpha", "beta", 3, extra=ON_GPUS)

        def credited() -> bool:
            """Whether beta is owed its GPUs, and nothing for its CPUs."""
            printed = north.slurm.run(
                *("env", "SLURM_TIME_FORMAT=%s", "sacct", "-nPX"),
                *("-j", str(lent), "-o", "Start,End"),
            )
            start, end = printed.strip().split("|")
            if not _has_cycle(north, "gpu") or not end.isdigit():
                return False
            status = north.status("gpu")
            owed_in_gpus = GPUS * worth(int(start), int(end), status.cycle.t)
            scores = {row.organization: row.score for row in status.rows}
            return scores == {"alpha": -owed_in_gpus, "beta": owed_in_gpus}

        north.until(credited, what="beta to be owed its GPUs exactly")
        asked, number = north.asked(), north.status().cycle.number
        north.until(lambda: north.status().cycle.number >= number + SOME_CYCLES, what="more cycles")
        made = north.status().cycle.number - number
        assert north.asked() - asked <= made + 2  # not for each pool; one or two may be under way
        north.occupy("alpha")
        north.occupy("beta", extra=ON_GPUS)
        for account in MEMBERS:
            north.slurm.submit(account, 3600, processors=CPUS, partition="alpha")
            north.slurm.submit(account, 3600, processors=CPUS, partition="beta", extra=ON_GPUS)
        north.until(
            lambda: (north.first("alpha"), north.first("beta")) == ("alpha", "beta"),
            what="who lent CPUs to be first for CPUs, and who lent GPUs for GPUs",
        )


def _has_cycle(site: Site, pool: str) -> bool:
    try:
        site.status(pool)
    except StoreError:
        return False
    return True


def _sentences(site: Site) -> list[str]:
    pool = site.status().pool
    assert pool is not None
    return pool.sentences()
