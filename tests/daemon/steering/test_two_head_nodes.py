"""The operations manual's commands for two head nodes, run on a real database."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from shapleyprio.lab.testbed import machine
from shapleyprio.lab.testbed.processes import wait_until
from tests.daemon import head_node
from tests.store.servers import PLACES, _mariadb, _postgresql

ROOT = Path(__file__).parents[3]
MANUAL = (ROOT / "docs" / "operations.md").read_text()
SECTION = MANUAL.partition("\n## Two head nodes\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", SECTION, flags=re.MULTILINE | re.DOTALL)
CREATE_POSTGRESQL, CREATE_MARIADB, BEGIN, LOOK, CHANGE_OVER, RELOAD, UPGRADE = BLOCKS
URL = re.findall(r'^url = "(postgresql://.*)"$', MANUAL, flags=re.MULTILINE)[0]
HEADS = ("head1", "head2")
LEADERS = {"10": HEADS[0], "01": HEADS[1]}
PATIENCE_SECONDS = 120.0

pytestmark = pytest.mark.real_server


def led(metrics: str) -> str:
    return "".join(re.findall(r"^shapleyprio_leader.* ([01])\.0$", metrics, flags=re.MULTILINE))


class Heads:
    """Head nodes, each with a folder for what is its own.

    Args:
        folder: for these.
        names: of the nodes.
    """

    def __init__(self, folder: Path, stack: ExitStack, names: tuple[str, ...] = HEADS) -> None:
        self.folder = folder
        self.names = names
        self.environment: dict[str, str] = {}
        programs = folder / "bin"
        programs.mkdir()
        for tool in head_node.TOOLS:
            script = programs / tool
            words = f'"{sys.executable}" -S "{head_node.__file__}" {tool} "$@"'
            script.write_text(f"#!/bin/sh\nexec {words}\n")
            script.chmod(0o755)
        for name in names:
            (folder / name).mkdir()
            port = stack.enter_context(machine.reserved_ports(1))
            (folder / name / "address").write_text(f"127.0.0.1:{port}")
        self._path = os.pathsep.join([str(programs), PLACES])

    def configure(self, url: str) -> None:
        (self.folder / HEADS[0] / head_node.NAME).write_text(
            f'[store]\nurl = "{url}"\n[drift]\ninterval = "off"\n'
            '[fairness]\nrule = "directcontr"\n'
            '[service]\npoll_interval = "1s"\nnew_jobs_interval = "off"\nlease = "3s"\n'
            f'[metrics]\naddress = "{head_node.DOCUMENTED}"\n'
            '[[organization]]\nname = "physics"\naccounts = ["physics"]\npartitions = ["pa"]\n'
        )

    def run(self, block: str, on: str = HEADS[0]) -> str:
        """Runs a block of commands on a head node, and returns what they print."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            env={
                **os.environ,
                "PATH": self._path,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "HEADS": str(self.folder),
                "HEAD": on,
                "UNIT": str(ROOT / "systemd" / "shapleyprio.service"),
                **self.environment,
            },
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, f"{block}{done.stdout}{done.stderr}{self.logs()}"
        return done.stdout

    def logs(self) -> str:
        files = [self.folder / name / "log" for name in self.names]
        return "".join(file.read_text() for file in files if file.exists())

    def leaders(self) -> str:
        """Whether each of them steers, 1 or 0, as their metrics say."""
        addresses = [(self.folder / name / "address").read_text() for name in HEADS]
        return "".join(led(head_node.metrics(address)) for address in addresses)

    def await_leader(self, *wanted: str) -> str:
        """Waits until one of these steers, and the other one waits; returns which."""
        found: list[str] = []

        def is_led() -> bool:
            found.append(self.leaders())
            assert found[-1] != "11"
            return LEADERS.get(found[-1]) in wanted

        wait_until(is_led, real_seconds=PATIENCE_SECONDS, what=f"one of {wanted} to steer")
        return LEADERS[found[-1]]

    def kill_all(self) -> None:
        for name in self.names:
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(int((self.folder / name / "pid").read_text()), signal.SIGKILL)


@pytest.fixture
def heads() -> Iterator[Heads]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="heads-")))
        heads = Heads(folder, stack)
        stack.callback(heads.kill_all)
        yield heads


def server_folder(heads: Heads) -> Path:
    folder = heads.folder / "server"
    folder.mkdir()
    heads.folder.chmod(0o755)
    return folder


def test_the_manuals_commands_run_two_head_nodes(heads: Heads) -> None:
    folder = server_folder(heads)
    with _postgresql(folder, "postgres"):
        heads.environment = {"PGHOST": str(folder), "PGUSER": "postgres"}
        heads.run(CREATE_POSTGRESQL)
        heads.environment = {}
        heads.configure(URL.replace("db.example.org", "") + f"?host={folder}")
        heads.run(BEGIN)
        leader = heads.await_leader(*HEADS)
        other = next(name for name in HEADS if name != leader)
        assert LEADERS[led(heads.run(LOOK))] == leader

        heads.run(CHANGE_OVER, on=leader)
        heads.await_leader(other)
        heads.run(RELOAD)
        wait_until(
            lambda: heads.logs().count("configuration reloaded") == 2,
            real_seconds=PATIENCE_SECONDS,
            what="both to read their configuration",
        )
        heads.run(UPGRADE)
        heads.await_leader(HEADS[0])
        heads.run("ssh head2 systemctl stop shapleyprio; systemctl stop shapleyprio")
        tokens = [int(line) for line in (heads.folder / "writes").read_text().split()]
        assert tokens == sorted(tokens)
        assert len(set(tokens)) >= 3


def test_the_manuals_database_on_mariadb_takes_the_tables(heads: Heads) -> None:
    folder = server_folder(heads)
    with _mariadb(folder):
        socket = folder / "socket"
        (heads.folder / ".my.cnf").write_text(f"[client]\nsocket = {socket}\nuser = root\n")
        heads.environment = {"HOME": str(heads.folder)}
        heads.run(CREATE_MARIADB)
        url = URL.replace("postgresql", "mariadb").replace("db.example.org", "localhost")
        heads.configure(f"{url}?unix_socket={socket}")
        heads.run("shapleyprio db upgrade")
