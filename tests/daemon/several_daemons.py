"""Daemons of one cluster as processes, and lives of such daemons that are led beside each other.

The cluster is simulated, the store and the signals are real. A write by an older token after the
first one by a newer token is the one that a frozen daemon may have had in its hands already.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from shapleyprio.lab.testbed.clock import clock_ahead
from tests.leases import is_locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.store.servers import Databases

LEASE_SECONDS = 3
POLL_SECONDS = 1
IN_HAND = 1
PATIENCE_SECONDS = 120.0


@dataclass
class Daemons:
    """Daemons of one cluster, on one store.

    Attributes:
        folder: for their files.
        url: of the store.
        lease: seconds.
    """

    folder: Path
    url: str
    lease: int = LEASE_SECONDS
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def record(self) -> Path:
        return self.folder / "writes"

    def start(
        self,
        *options: str,
        url: str | None = None,
        journal: str | None = None,
        before: Sequence[str] = (),
        **environment: str,
    ) -> subprocess.Popen[bytes]:
        number = len(self.processes)
        config = self.folder / f"{number}.toml"
        has_journal = "" if journal is None else f'journal = "{journal}"\n'
        config.write_text(
            f'[store]\nurl = "{url or self.url}"\n{has_journal}[metrics]\naddress = "off"\n'
            '[drift]\ninterval = "off"\n[fairness]\nrule = "directcontr"\n'
            f'[service]\npoll_interval = "{POLL_SECONDS}s"\nnew_jobs_interval = "off"\n'
            f'lease = "{self.lease}s"\n'
            '[[organization]]\nname = "physics"\naccounts = ["physics"]\npartitions = ["pa"]\n'
        )
        program = (sys.executable, "-m", "tests.daemon.played_daemon", str(self.record))
        with (self.folder / f"{number}.log").open("wb") as log:
            process = subprocess.Popen(
                [*before, *program, "daemon", "--config", str(config), *options],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
                | environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def start_with_clock(self, offset: float) -> subprocess.Popen[bytes]:
        """One that stands by and whose clock is ahead by so many seconds."""
        file = self.folder / f"{len(self.processes)}.clock"
        return self.start("--standby", **clock_ahead(file, offset))

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_all(self) -> None:
        for process in self.processes:
            self.kill(process)

    def log(self, process: subprocess.Popen[bytes]) -> str:
        return (self.folder / f"{self.processes.index(process)}.log").read_text(errors="replace")

    def tokens(self) -> list[int]:
        """By which token each write was made, in their order."""
        return (
            [int(line) for line in self.record.read_text().split()] if self.record.exists() else []
        )

    def until(self, done: Callable[[], bool], *, what: str) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not done():
            logs = "\n".join(self.log(process) for process in self.processes)
            assert time.monotonic() < end, f"no {what} in {self.tokens()}; the logs:\n{logs}"
            time.sleep(0.05)

    def until_written_by(self, token: int) -> None:
        self.until(lambda: token in self.tokens(), what=f"write by token {token}")

    def until_standing_by(self, process: subprocess.Popen[bytes], times: int = 1) -> None:
        self.until(
            lambda: self.log(process).count("standing by") >= times, what="daemon that stands by"
        )

    def until_steering(self, among: Sequence[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Waits until one of those that stood by steers, and returns it."""
        self.until(lambda: any("steering" in self.log(one) for one in among), what="daemon steers")
        (leader,) = [process for process in among if "steering" in self.log(process)]
        return leader

    def until_frozen(self, process: subprocess.Popen[bytes]) -> None:
        """Waits until it has frozen by itself."""
        status = psutil.Process(process.pid).status
        self.until(lambda: status() == psutil.STATUS_STOPPED, what="daemon that freezes")

    def freeze(self, process: subprocess.Popen[bytes]) -> None:
        """Stops it in the middle of its writes, but not with SQLite's lock, which would stay."""
        while True:
            self._until_more()
            process.send_signal(signal.SIGSTOP)
            if not is_locked(self.url):
                return
            process.send_signal(signal.SIGCONT)

    def _until_more(self) -> None:
        written = len(self.tokens())
        self.until(lambda: len(self.tokens()) > written, what="more writes")

    def assert_fenced(self) -> None:
        """Checks that nobody wrote who was succeeded, but for what was in hand already."""
        newest = 0
        late: dict[int, int] = {}
        for token in self.tokens():
            newest = max(newest, token)
            if token < newest:
                late[token] = late.get(token, 0) + 1
        assert all(count <= IN_HAND for count in late.values()), late


class Wire:
    """A socket that forwards to another one, until it is cut; nobody at the ends hears of that.

    Args:
        end: path of the socket to forward to.
        here: path of this one.
    """

    def __init__(self, end: str, here: Path) -> None:
        self._end = end
        self._whole = threading.Event()
        self._whole.set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(here))
        here.chmod(0o777)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._end)
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # a killed process resets what it has not read
            while data := source.recv(65536):
                self._whole.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@dataclass(frozen=True)
class Life:
    """What some daemons go through.

    Attributes:
        lead: leads it, and checks what must be so.
        kind: of the store.
        lease: seconds.
    """

    lead: Callable[[Daemons], None]
    kind: str
    lease: int


@contextmanager
def led_beside_each_other(
    lives: Mapping[str, Life], databases: Databases, folder: Path
) -> Iterator[Mapping[str, Future[None]]]:
    """Begins all lives at once, for they mostly wait; yields what becomes of each.

    Args:
        lives: name -> life.
        databases: where stores are made.
        folder: for the daemons' files.
    """
    preparing = threading.Lock()

    def lead(number: int, life: Life) -> None:
        with ExitStack() as stack:
            place = folder / str(number)
            place.mkdir()
            with preparing:
                url = stack.enter_context(databases.made(life.kind))
            daemons = Daemons(place, url, life.lease)
            stack.callback(daemons.kill_all)
            life.lead(daemons)

    with ThreadPoolExecutor(max(len(lives), 1)) as pool:
        yield {
            name: pool.submit(lead, number, life)
            for number, (name, life) in enumerate(lives.items())
        }
