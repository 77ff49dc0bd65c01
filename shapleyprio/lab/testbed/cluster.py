"""A private real Slurm: munge, MariaDB, slurmdbd, slurmctld and slurmd on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import ExitStack, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from shapleyprio.common.workers import PYTHON
from shapleyprio.lab.testbed import machine
from shapleyprio.lab.testbed.clock import ClusterClock, clock_ahead
from shapleyprio.lab.testbed.configuration import EVERYTHING, ClusterPaths, ClusterSpec, write_files
from shapleyprio.lab.testbed.database import Database
from shapleyprio.lab.testbed.detached import start_detached
from shapleyprio.lab.testbed.machine import SEARCH_PATH, TestbedError, program
from shapleyprio.lab.testbed.processes import MARKER, Guard, SlurmDaemon, end_all, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Restartable = Literal["slurmctld", "slurmdbd"]

PATIENCE = 60.0  # real seconds for a daemon to answer, on a busy machine
LONGEST_ANSWER = 4000  # characters of a picture
LOG_LINES = 60
# a caller's own Slurm or clock must not leak in
FOREIGN = ("SLURM", "SBATCH_", "SACCT_", "SQUEUE_", "SINFO_", "SALLOC_", "LD_PRELOAD")


class PrivateSlurm:
    """A real Slurm whose whole state is one directory and which no one else can reach.

    Args:
        directory: created if need be; a short path, for it holds UNIX sockets.
        spec: what it shall look like.
        prepared: a database made by prepare_database, which saves 2 seconds.

    Attributes:
        environment: the complete one for client processes; once the cluster starts.
        clock: its clock, likewise.
        paths: its files and ports, likewise.
    """

    environment: Mapping[str, str]
    clock: ClusterClock
    paths: ClusterPaths

    def __init__(self, directory: Path, spec: ClusterSpec, *, prepared: Path | None = None) -> None:
        self.directory = directory.resolve()
        self.spec = spec
        self._prepared = prepared
        self._daemons: dict[str, SlurmDaemon] = {}
        self._life: ExitStack | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    # -- its life

    def start(self) -> None:
        """Boots everything and waits until the nodes are idle."""
        if self._life is not None:
            return
        with ExitStack() as life:
            self._start_accounting(life)
            self._start_scheduling()
            self._life = life.pop_all()

    def stop(self) -> None:
        """Ends everything, jobs too; the files stay."""
        if self._life is not None:
            self._life.close()
            self._life = None

    def _end_everything(self, guard: Guard) -> None:
        scheduling = ("slurmctld", *self._node_daemons())
        for names in (scheduling, ("slurmdbd",), ("mariadbd", "munged")):
            end_all([self._daemons[n] for n in names if n in self._daemons], seconds=8)
        guard.end()
        self._daemons.clear()

    def kill(self, daemon: Restartable) -> None:
        """Kills a daemon with SIGKILL."""
        self._daemons[daemon].signal(signal.SIGKILL)
        self._daemons[daemon].wait(10)

    def restart(self, daemon: Restartable, *, ahead: int = 0) -> None:
        """Starts a daemon again and waits until it answers.

        Args:
            daemon: which.
            ahead: seconds by which its clock is ahead of the machine's from now on; for a cluster
                whose clock is the machine's.
        """
        end_all([self._daemons[daemon]], seconds=8)
        clock = clock_ahead(self.directory / "run" / f"{daemon}.clock", ahead) if ahead else {}
        self._daemons[daemon].start(clock)
        if daemon == "slurmctld":
            self.clock.watch(self._daemons[daemon].process)
        self._await_daemon(
            daemon, self._controller_answers if daemon == "slurmctld" else self._accounting_answers
        )

    def freeze(self, daemon: Restartable) -> None:
        """Suspends a daemon: it lives, but does not answer."""
        self._daemons[daemon].signal(signal.SIGSTOP)

    def thaw(self, daemon: Restartable) -> None:
        """Resumes a frozen daemon."""
        self._daemons[daemon].signal(signal.SIGCONT)

    # -- its use

    def run(
        self, *argv: str, stdin: str | None = None, check: bool = True, timeout: float = 60
    ) -> str:
        """Runs a client command and returns its standard output.

        Args:
            argv: the command, found on the cluster's PATH.
            stdin: text for its standard input.
            check: raise TestbedError if it fails; else return what it printed.
            timeout: real seconds.
        """
        done = self._command(*argv, stdin=stdin, timeout=timeout)
        if check and done.returncode != 0:
            raise TestbedError(f"{' '.join(argv)}: rc {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def now(self) -> int:
        """Returns the cluster's clock in seconds since the epoch."""
        return int(self.clock.now())

    def wait_until(self, predicate: Callable[[], bool], *, real_seconds: float, what: str) -> None:
        """Waits until something is true.

        Raises:
            TestbedError: it was awaited in vain; the message also shows the cluster.
        """
        try:
            wait_until(predicate, real_seconds=real_seconds, what=what)
        except TestbedError as error:
            raise TestbedError(f"{error}; the cluster then:\n{self.picture()}") from error

    def picture(self) -> str:
        """Returns every node and job, why it stands still, and `last_words`."""
        commands = (
            ("sinfo", "-N", "-o", "%N %T %C %E"),
            ("squeue", "--all", "-o", "%i %a %T %Q %S %r %N"),
            ("sacct", "--allusers", "-X"),
            ("sdiag",),
        )
        shown = [self.run(*command, check=False)[-LONGEST_ANSWER:] for command in commands]
        return "\n".join([*shown, self.last_words()])

    def last_words(self) -> str:
        """Returns the last lines of the logs of slurmdbd and slurmctld, even if these hang."""
        shown = []
        for name in ("slurmdbd", "slurmctld"):
            log = self.directory / "log" / f"{name}.log"
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            shown.append("\n".join([f"{name}:", *lines[-LOG_LINES:]]))
        return "\n".join(shown)

    def add_accounts(
        self, accounts: Mapping[str, str | None], *, shares: Mapping[str, int] | None = None
    ) -> None:
        """Adds accounts and the current user to each of them.

        Args:
            accounts: name -> parent, or None.
            shares: name -> its shares in Slurm's fair share; 1 for all others.
        """
        tail = f"cluster={self.spec.name}"
        for parent, group in groupby(accounts.items(), key=lambda pair: pair[1]):
            names = ",".join(name for name, _ in group)
            under = [f"parent={parent}"] if parent else []
            self.run("sacctmgr", "-i", "add", "account", names, *under, tail)
        self.run(
            "sacctmgr", "-i", "add", "user", self.paths.user, f"account={','.join(accounts)}", tail
        )
        for name, share in (shares or {}).items():
            where = ("where", f"name={name}", tail, "set", f"fairshare={share}")
            self.run("sacctmgr", "-i", "modify", "account", *where)

    def add_qos(self, accounts: Sequence[str]) -> None:
        """Adds a QOS for each account, of its name and the only one that it may use."""
        self.run("sacctmgr", "-i", "add", "qos", ",".join(accounts))
        for account in accounts:
            where = ("where", f"name={account}", f"cluster={self.spec.name}")
            given = (f"qos={account}", f"defaultqos={account}")
            self.run("sacctmgr", "-i", "modify", "account", *where, "set", *given)

    def submit(
        self,
        account: str,
        seconds: int,
        *,
        processors: int = 1,
        partition: str = EVERYTHING,
        extra: Sequence[str] = (),
        **options: str | int | None,
    ) -> int:
        """Submits a job that sleeps and returns its id.

        Args:
            account: that it counts for.
            seconds: for which it sleeps.
            processors: that it needs.
            partition: that it may run in.
            extra: arguments of sbatch.
            options: of sbatch, such as ``nice=5`` or ``job_name="a"``; None leaves one out.
        """
        words = [f"--account={account}", f"--partition={partition}", f"--ntasks={processors}"]
        words += [f"--time={seconds // 30 + 10}", "--output=/dev/null"]
        words += [
            f"--{name.replace('_', '-')}={value}"
            for name, value in options.items()
            if value is not None
        ]
        wrap = f"--wrap=exec {program('sleep')} {seconds}"
        answer = self.run("sbatch", "--parsable", *words, *extra, wrap)
        return int(answer.split(";")[0])

    def starts_again(self, job: int) -> bool:
        """Returns whether a requeued job has started again, or may now start at once.

        Slurm may let it wait until the credential of its first start has expired, which takes two
        hours on an accelerated clock, and for a moment it refuses updates ("try again in a bit").
        From 26.05 on, the job may have started by itself.
        """
        shown = self.run("scontrol", "show", "job", "-o", str(job))
        if "JobState=PENDING " not in shown:
            return "JobState=COMPLETING " not in shown and "Restarts=0 " not in shown
        with suppress(TestbedError):
            self.run("scontrol", "update", f"JobId={job}", "StartTime=now")
            return True
        return False

    def start_python(self, module: str, *arguments: str, log: Path) -> subprocess.Popen[bytes]:
        """Starts one of our modules beside the cluster, on its clock.

        Args:
            module: run as with ``python -m``.
            arguments: of the command.
            log: file for what it prints; Ctrl-C in our terminal does not reach it.
        """
        marked = {MARKER: str(self.directory)}
        log.write_bytes(b"")
        started = start_detached(
            [*PYTHON, "-m", module, *arguments],
            environment={**self.environment, **marked},
            log=log,
            directory=self.directory,
        )
        self.clock.watch(started.pid)
        return started

    # -- booting

    def _start_accounting(self, life: ExitStack) -> None:
        """Starts all but slurmctld and the nodes' daemons; closing `life` ends everything."""
        paths = self.paths = ClusterPaths(
            directory=self.directory,
            base_port=life.enter_context(machine.reserved_ports(self.spec.port_count)),
            user=machine.user_name(),
            host=machine.loopback_host_name(),
        )
        machine.check_paths(self.directory, (paths.munge_socket, paths.database_socket))
        write_files(self.spec, paths)
        base = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        base |= {"PATH": SEARCH_PATH, "SLURM_CONF": str(paths.slurm_conf)}
        base["MYSQL_UNIX_PORT"] = str(paths.database_socket)
        file = self.directory / "run" / "clock"
        self.clock = ClusterClock(file, speed=self.spec.speed, epoch=self.spec.epoch)
        life.callback(self.clock.stop)
        guard = Guard(self.directory, base)
        life.callback(self._end_everything, guard)
        self.environment = {**base, **self.clock.environment}
        self._start_daemon("munged", *self._munged(), environment=base)
        database = Database(paths, self.run)
        database.fill(self._prepared)
        self._start_daemon("mariadbd", *database.daemon, environment=base)
        self._await_daemon("munged", paths.munge_socket.exists)
        self._await_daemon("mariadbd", database.answers)
        database.create_accounting()
        self._start_daemon("slurmdbd", "slurmdbd", "-D", "-s")
        self._await_daemon("slurmdbd", self._accounting_answers)

    def _start_scheduling(self) -> None:
        name = self.spec.name
        if not self.run("sacctmgr", "-nP", "show", "cluster", name, "format=cluster").strip():
            self.run("sacctmgr", "-i", "add", "cluster", name)
        # -i: from 26.05 on, one that was killed before its first checkpoint does not start without
        self._start_daemon("slurmctld", "slurmctld", "-D", "-s", "-i")
        self.clock.watch(self._daemons["slurmctld"].process)
        for node in self.spec.nodes:
            steps = ["-d", str(self.paths.steps)] if self.spec.speed > 1 else []
            self._start_daemon(f"slurmd-{node}", "slurmd", "-D", "-s", "-N", node, *steps)
        self._await_daemon("slurmctld", self._controller_answers)
        wait_until(self._nodes_idle, real_seconds=PATIENCE, what="idle nodes")
        # only a registered controller hears of accounts that are added
        wait_until(self._controller_registered, real_seconds=PATIENCE, what="registration")

    def _munged(self) -> list[str]:
        run, log = self.directory / "run", self.directory / "log"
        return [
            *("munged", "--foreground", "--force", f"--socket={self.paths.munge_socket}"),
            f"--key-file={self.paths.munge_key}",
            f"--pid-file={run / 'munged.pid'}",
            f"--seed-file={run / 'munged.seed'}",
            f"--log-file={log / 'munged.log'}",
        ]

    def _start_daemon(
        self, name: str, command: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> None:
        marked = {**(environment or self.environment), MARKER: str(self.directory)}
        log = self.directory / "log" / f"{name}.output"
        self._daemons[name] = SlurmDaemon([program(command), *arguments], marked, log)

    # -- watching

    def _await_daemon(self, name: str, answers: Callable[[], bool]) -> None:
        daemon = self._daemons[name]

        def answered_or_ended() -> bool:
            return not daemon.alive() or answers()

        wait_until(answered_or_ended, real_seconds=PATIENCE, what=f"{name} to answer")
        if not daemon.alive():
            raise TestbedError(f"{name} ended at once: {daemon.complaint()}")

    def _command(
        self, *argv: str, stdin: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [program(argv[0]), *argv[1:]],
                env=self.environment,
                cwd=self.directory,
                input=stdin or "",
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TestbedError(f"{' '.join(argv)}: no answer within {timeout:g} s") from error

    def _accounting_answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.paths.base_port)):
            return self._command("sacctmgr", "-nP", "show", "cluster").returncode == 0
        return False

    def _controller_answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.paths.controller_port)):
            return self._command("scontrol", "ping").returncode == 0
        return False

    def _nodes_idle(self) -> bool:
        states = self.run("sinfo", "-h", "-N", "-o", "%T", check=False).split()
        return bool(states) and set(states) == {"idle"}

    def _controller_registered(self) -> bool:
        show = ("sacctmgr", "-nP", "show", "cluster", self.spec.name, "format=controlport")
        return self.run(*show).strip() not in {"", "0"}

    def _node_daemons(self) -> list[str]:
        return [name for name in self._daemons if name.startswith("slurmd-")]


def prepare_database(directory: Path) -> Path:
    """Makes an accounting database that new clusters start from, and returns its folder."""
    maker = PrivateSlurm(directory, ClusterSpec())
    with ExitStack() as life:
        maker._start_accounting(life)  # noqa: SLF001 - a friend: half a cluster is enough
    return maker.paths.database
