"""A private cluster's processes: started, stopped, and guarded so that none is left behind.

``python -m shapleyprio.lab.testbed.processes DIRECTORY`` is the guard, which outlives everything
else of a cluster. It prints a line when it is there, and waits until its standard input closes:
when the cluster stops, or when the process that started the cluster is gone, however it ended. Then
it kills what is left. Until then it ends steps that do not end by themselves.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import psutil

from shapleyprio.common.workers import PYTHON
from shapleyprio.lab.testbed.detached import start_detached, wait_or_kill
from shapleyprio.lab.testbed.machine import TestbedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


MARKER = "SHAPLEYPRIO_TESTBED"  # in the environment of every daemon: its cluster's directory
SHORTEST_PAUSE, LONGEST_PAUSE = 0.03, 0.4  # seconds from one look to the next
KILL_SECONDS = 5


class SlurmDaemon:
    """A daemon of the private Slurm in the foreground of its own session, which it starts.

    Args:
        argv: command and arguments.
        environment: the complete one.
        log: file for its output.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._argv = argv
        self._environment = environment
        self._log = log
        self.start()

    def start(self, clock: Mapping[str, str] = MappingProxyType({})) -> None:
        """Starts it again, once it has ended; Ctrl-C in our terminal does not reach its session.

        Args:
            clock: what to add to its environment, for a clock of its own.
        """
        environment = {**self._environment, **clock}
        self._process = start_detached(self._argv, environment=environment, log=self._log)

    def alive(self) -> bool:
        """Returns whether it has not ended."""
        return self._process.poll() is None

    @property
    def process(self) -> int:
        """Its number, while it lives."""
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the living daemon."""
        self._process.send_signal(number)  # does nothing once the daemon has ended

    def wait(self, seconds: float) -> None:
        """Waits for its end, at last by killing it."""
        wait_or_kill(self._process, seconds)

    def complaint(self) -> str:
        """Returns its last words, for error messages."""
        return "\n".join(self._log.read_text(errors="replace").strip().splitlines()[-5:])


def end_all(daemons: Sequence[SlurmDaemon], seconds: float) -> None:
    """Ends daemons together: all get the signal before the first is waited for."""
    for daemon in daemons:
        daemon.signal(signal.SIGCONT)
        daemon.signal(signal.SIGTERM)
    for daemon in daemons:
        daemon.wait(seconds)


def wait_until(predicate: Callable[[], bool], *, real_seconds: float, what: str) -> None:
    """Waits for something to become true, on this process's clock.

    It looks the less often the longer it waits: a look may start commands of Slurm.

    Raises:
        TestbedError: it did not within `real_seconds`; `what` names it.
    """
    begin = time.monotonic()
    while not predicate():
        waited = time.monotonic() - begin
        if waited > real_seconds:
            raise TestbedError(f"timed out after {real_seconds:g} s waiting for {what}")
        time.sleep(min(max(SHORTEST_PAUSE, waited / 10), LONGEST_PAUSE))


def kill_leftovers(directory: Path) -> None:
    """Kills every daemon, job step and job process of the cluster in this directory."""
    for _ in range(20):  # a process found may have started another meanwhile
        leftovers = _leftovers(directory)
        if not leftovers:
            return
        for process in leftovers:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(leftovers, timeout=1)


def end_stuck_steps(
    directory: Path, suspects: frozenset[psutil.Process]
) -> frozenset[psutil.Process]:
    """Kills steps of the cluster in this directory that neither run anything nor end.

    A slurmstepd may wait for ever for a thread of its own after its job has ended (seen with 22.05
    once in some ten thousand jobs); the job then stays in COMPLETING and its processors busy.

    Args:
        directory: the cluster's.
        suspects: what the last call returned.

    Returns:
        Steps that the next call kills if nothing has changed by then.
    """
    found = set()
    for name in Path("/proc").glob("[0-9]*/comm"):
        with suppress(psutil.Error, OSError):
            if not name.read_bytes().startswith(b"slurmstepd"):
                continue  # a guard looks at all that runs again and again
            process = psutil.Process(int(name.parent.name))
            if _waits_for_a_thread(process) and _belongs(process, directory, clients=False):
                found.add(process)
    for process in found & suspects:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return frozenset(found - suspects)


def _waits_for_a_thread(process: psutil.Process) -> bool:
    """Returns whether a process without children waits for a thread of its own, not for a peer."""
    wait = Path(f"/proc/{process.pid}/wchan").read_text(encoding="ascii")
    return "futex" in wait and not process.children()


def end_clients(directory: Path) -> list[str]:
    """Kills clients that still ask the stopped cluster; returns the processes that survive."""
    for process in processes_of(directory):
        with suppress(psutil.Error):
            process.kill()
            process.wait(KILL_SECONDS)
    return [str(process) for process in processes_of(directory)]


def _leftovers(directory: Path) -> list[psutil.Process]:
    mine = {psutil.Process().pid, *(p.pid for p in psutil.Process().parents())}
    children: dict[int, list[psutil.Process]] = {}
    found: dict[int, psutil.Process] = {}
    for process in _everybody():
        children.setdefault(process.info["ppid"], []).append(process)
        with suppress(psutil.Error):
            if process.pid not in mine and _belongs(process, directory, clients=False):
                found[process.pid] = process
    families = list(found.values())
    for process in families:  # grows: each one's children come after it
        for child in children.get(process.pid, []):
            if child.pid not in mine and child.pid not in found:
                found[child.pid] = child
                families.append(child)
    return [p for p in families if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def processes_of(directory: Path) -> list[psutil.Process]:
    """Returns every process of the cluster in this directory and every client, but for this one."""
    found = []
    for process in _everybody():
        with suppress(psutil.Error, OSError):
            if (
                process.pid != os.getpid()
                and process.status() != psutil.STATUS_ZOMBIE
                and _belongs(process, directory, clients=True)
            ):
                found.append(process)
    return found


def _everybody() -> Iterator[psutil.Process]:
    """Returns all processes, each with its parent in `info`."""
    psutil.process_iter.cache_clear()  # a number may be another process's by now
    yield from psutil.process_iter(["ppid"])


def _belongs(process: psutil.Process, directory: Path, *, clients: bool) -> bool:
    environment = process.environ()
    if environment.get(MARKER) == str(directory):
        return True
    asks = clients or "SLURM_JOB_ID" in environment
    if asks and Path(environment.get("SLURM_CONF", "/")).is_relative_to(directory):
        return True
    # slurmstepd (Debian's slurmstepd-wlm) writes its title over its environment,
    # but holds files of ours open
    return Path(process.exe()).name.startswith("slurmstepd") and _holds_files_below(
        process, directory
    )


def _holds_files_below(process: psutil.Process, directory: Path) -> bool:
    links = Path(f"/proc/{process.pid}/fd").iterdir()
    with suppress(OSError):
        return any(link.readlink().is_relative_to(directory) for link in links)
    return False


CLEARING_SECONDS = 60  # real ones, on a busy machine with thousands of job steps


class Guard:
    """Clears up after the cluster, whatever becomes of this process.

    Args:
        directory: the cluster's, which exists.
        environment: of the guard.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        log = directory / "log" / "guard.output"
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [*PYTHON, "-m", "shapleyprio.lab.testbed.processes", str(directory)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        if self._process.stdout is None or not self._process.stdout.readline():
            self._process.communicate()
            raise TestbedError(f"the guard did not start: {log.read_text(errors='replace')}")

    def end(self) -> None:
        """Makes it clear up, which it does when its input closes."""
        try:
            self._process.communicate(timeout=CLEARING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


STEPS_SECONDS = 10.0  # from one look at the steps to the next, on the machine's clock


def main() -> None:
    """Guards the directory named on the command line."""
    print("guarding", flush=True)
    directory = Path(sys.argv[1])
    suspects: frozenset[psutil.Process] = frozenset()
    while not select.select([sys.stdin], [], [], STEPS_SECONDS)[0]:
        suspects = end_stuck_steps(directory, suspects)
    kill_leftovers(directory)


if __name__ == "__main__":
    main()
