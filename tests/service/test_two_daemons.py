"""Two daemons as processes: one steers whatever happens, and never both.

The cluster is simulated, the store and the signals are real. A write by an older token after the
first one by a newer token is the one that a frozen daemon may have had in its hands already.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psutil
import pytest
from sqlalchemy import make_url

from shapleyprio.store import Store
from shapleyprio.store.engine import IDLE_SECONDS
from tests.service.played_daemon import FREEZE
from tests.store.servers import KINDS, SERVERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.store.servers import Databases

LEASE_SECONDS = 3
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
        before: Sequence[str] = (),
        **environment: str,
    ) -> subprocess.Popen[bytes]:
        number = len(self.processes)
        config = self.folder / f"{number}.toml"
        config.write_text(
            f'[store]\nurl = "{url or self.url}"\n[metrics]\naddress = "off"\n'
            '[drift]\ninterval = "off"\n[fairness]\nrule = "directcontr"\n'
            f'[service]\npoll_interval = "1s"\nnew_jobs_interval = "off"\nlease = "{self.lease}s"\n'
            '[[organization]]\nname = "physics"\naccounts = ["physics"]\npartitions = ["pa"]\n'
        )
        program = (sys.executable, "-m", "tests.service.played_daemon", str(self.record))
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

    def freeze(self, process: subprocess.Popen[bytes]) -> None:
        """Stops it in the middle of its writes, but not with SQLite's lock, which would stay."""
        while True:
            self._until_more()
            process.send_signal(signal.SIGSTOP)
            if not self._is_locked():
                return
            process.send_signal(signal.SIGCONT)

    def _until_more(self) -> None:
        written = len(self.tokens())
        self.until(lambda: len(self.tokens()) > written, what="more writes")

    def _is_locked(self) -> bool:
        file = make_url(self.url).database
        if not self.url.startswith("sqlite") or file is None:
            return False
        with closing(sqlite3.connect(file, timeout=0.5, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
        return False

    def assert_fenced(self) -> None:
        """Checks that nobody wrote who was succeeded, but for what was in hand already."""
        newest = 0
        late: dict[int, int] = {}
        for token in self.tokens():
            newest = max(newest, token)
            if token < newest:
                late[token] = late.get(token, 0) + 1
        assert all(count <= IN_HAND for count in late.values()), late


@pytest.fixture
def make_daemons(tmp_path: Path) -> Iterator[Callable[..., Daemons]]:
    made: list[Daemons] = []

    def make(url: str, lease: int = LEASE_SECONDS) -> Daemons:
        Store.open(url, create=True).close()
        made.append(Daemons(tmp_path, url, lease))
        return made[-1]

    yield make
    for process in (process for daemons in made for process in daemons.processes):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def empty(databases: Databases, kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'store.db'}"
    else:
        with databases.empty(kind) as url:
            yield url


def clock_of_next_year() -> Sequence[str]:
    """Words before a command; none where libfaketime is not to be had."""
    return ("faketime", "-f", "+365d") if shutil.which("faketime") else ()


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_frozen_daemon_writes_nothing_more_and_a_killed_one_is_succeeded(
    kind: str, databases: Databases, tmp_path: Path, make_daemons: Callable[..., Daemons]
) -> None:
    with empty(databases, kind, tmp_path) as url:
        daemons = make_daemons(url)
        first = daemons.start("--standby")
        daemons.until_written_by(1)
        other = daemons.start(
            "--standby", before=clock_of_next_year(), FAKETIME_DONT_FAKE_MONOTONIC="1"
        )
        daemons.until_standing_by(other)
        time.sleep(LEASE_SECONDS + 1)  # long enough to take over from a daemon that is only slow
        assert set(daemons.tokens()) == {1}

        daemons.freeze(first)
        daemons.until_written_by(2)
        first.send_signal(signal.SIGCONT)
        daemons.until_standing_by(first)

        os.killpg(other.pid, signal.SIGKILL)
        daemons.until_written_by(3)
        again = daemons.start("--standby")
        daemons.until_standing_by(again)
        first.terminate()
        daemons.until_written_by(4)
        assert first.wait(PATIENCE_SECONDS) == 0
        again.terminate()
        assert again.wait(PATIENCE_SECONDS) == 0
    daemons.assert_fenced()


def test_who_stops_in_order_hands_over_at_once(
    tmp_path: Path, make_daemons: Callable[..., Daemons]
) -> None:
    daemons = make_daemons(f"sqlite:///{tmp_path / 'store.db'}", lease=86_400)
    first = daemons.start()
    daemons.until_written_by(1)
    other = daemons.start("--standby")
    daemons.until_standing_by(other)
    first.terminate()
    daemons.until_written_by(2)  # and not a day later
    assert first.wait(PATIENCE_SECONDS) == 0
    daemons.assert_fenced()


@pytest.mark.parametrize("kind", SERVERS)
def test_who_freezes_within_a_transaction_is_succeeded_and_undone(
    kind: str, databases: Databases, tmp_path: Path, make_daemons: Callable[..., Daemons]
) -> None:
    with databases.empty(kind) as url:
        daemons = make_daemons(url)
        trigger = tmp_path / "freeze"
        first = daemons.start(**{FREEZE: str(trigger)})
        daemons.until_written_by(1)
        other = daemons.start("--standby")
        daemons.until_standing_by(other)
        trigger.touch()
        daemons.until(lambda: is_stopped(first), what="daemon that freezes")
        frozen_at = time.monotonic()
        daemons.until_written_by(2)
        took = time.monotonic() - frozen_at
        assert took < 2 * IDLE_SECONDS + 15, took  # on a busy machine; alone it takes 11 s
        trigger.unlink()
        first.send_signal(signal.SIGCONT)
        daemons.until_standing_by(first)
    daemons.assert_fenced()


def is_stopped(process: subprocess.Popen[bytes]) -> bool:
    return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED


def test_the_same_host_name_and_process_number_do_not_let_two_steer(
    tmp_path: Path, make_daemons: Callable[..., Daemons]
) -> None:
    inside = ("unshare", "--fork", "--pid", "--uts", "--kill-child", "sh", "-c")
    alike = (*inside, 'hostname node && exec "$@"', "sh")
    try:
        done = subprocess.run([*alike, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode != 0:
        pytest.skip("we may make no namespaces")
    daemons = make_daemons(f"sqlite:///{tmp_path / 'store.db'}")
    daemons.start(before=alike)
    daemons.until_written_by(1)
    refused = daemons.start(before=alike)
    assert refused.wait(PATIENCE_SECONDS) == 6
    assert "process 1 on node steers cluster c1" in daemons.log(refused)
    assert set(daemons.tokens()) == {1}


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
        with suppress(OSError):
            while data := source.recv(65536):
                self._whole.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.mark.real_server
def test_who_is_cut_off_from_the_database_writes_nothing_and_stops_when_asked_to(
    databases: Databases, make_daemons: Callable[..., Daemons]
) -> None:
    with databases.empty("postgresql") as url, TemporaryDirectory(dir="/tmp") as short:
        name = ".s.PGSQL.5432"
        there = make_url(url).query["host"]
        wire = Wire(f"{there}/{name}", Path(short, name))
        daemons = make_daemons(url)
        through = make_url(url).set(query={"host": short}).render_as_string(hide_password=False)
        first = daemons.start(url=through)
        daemons.until_written_by(1)
        other = daemons.start("--standby")
        daemons.until_standing_by(other)

        wire.cut()
        daemons.until_written_by(2)
        wire.mend()
        daemons.until_standing_by(first)

        os.killpg(other.pid, signal.SIGKILL)
        daemons.until_written_by(3)
        wire.cut()
        time.sleep(LEASE_SECONDS)  # its threads ask the store by then, and hear nothing
        first.terminate()
        asked_at = time.monotonic()
        assert first.wait(PATIENCE_SECONDS) == 4
        assert time.monotonic() - asked_at < 60  # a busy machine's; alone it takes 8
        assert "the store does not answer" in daemons.log(first)
        wire.mend()
    daemons.assert_fenced()
