"""Real Unix users: a daemon as packages set it up, and those who ask it."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import distribution
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from shapleyprio.common import shipped
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.slurm.command_line import alarmed
from tests.end_to_end import forked
from tests.end_to_end.consortium import ALL_CPUS, COMMAND_SECONDS, Consortium
from tests.end_to_end.forked import Readable
from tests.processes import as_nobody

# users that every Debian has; none of them may read what is root's
OWNER, OTHER, COORDINATOR, OPERATOR, DAEMON = "games", "mail", "lp", "news", "backup"

PYTHONS = (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3")
"""Of which users may run one, wherever ours is."""

RANKED = re.compile("rank [1-3] of 3")
"""What an answer says of an organization that the daemon has ranked."""


def readable_by_everybody(folder: Path, pythons: Sequence[str] = PYTHONS) -> Readable:
    """What users need of a Python and a checkout where only root gets to: in root's home, say.

    Args:
        folder: that everybody may enter; copies go there.
        pythons: the first that users may run is taken.
    """
    script = Path(shutil.copy(alarmed.__file__, folder))
    shutil.copytree(shipped.find("sql"), folder / "sql")
    metadata = folder / "shapleyprio.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(distribution("shapleyprio").read_text("METADATA") or "")
    for path in folder.rglob("*"):
        path.chmod(0o755)
    for python in pythons:
        words = (python, "-I", "-S", str(script))
        with suppress(OSError):
            if as_nobody({}, *words, str(time.monotonic() + 60), "true").returncode == 0:
                return Readable(words, folder)
    pytest.fail(
        f"users other than root may run none of {', '.join(pythons)}: as root,"
        " apt-get install python3",
        pytrace=False,
    )


class Users:
    """A daemon of its own user, and users who ask it.

    Args:
        cluster: running.
        folder: that everybody may enter, for configuration, store and socket as packages have them.
        store: as of a `Consortium`.

    Attributes:
        consortium: with the store of the daemon's.
        own: job of the owner, of account alpha.
        others: jobs of the other user, of accounts alpha and beta.
    """

    def __init__(self, cluster: PrivateSlurm, folder: Path, store: str | None) -> None:
        self.folder = folder
        owner = pwd.getpwnam(DAEMON)
        folder.chmod(0o755)
        (folder / "program").mkdir()
        (folder / "program").chmod(0o755)
        self._readable = readable_by_everybody(folder / "program")
        for name, mode in (("etc", 0o751), ("state", 0o750), ("run", 0o755)):
            (folder / name).mkdir()
            (folder / name).chmod(mode)
            if name != "etc":
                os.chown(folder / name, owner.pw_uid, owner.pw_gid)
        self.consortium = Consortium(cluster, folder / "state", store)
        self.consortium.config_file = folder / "etc" / "shapleyprio.toml"
        self.own = 0
        self.others: list[int] = []
        self._daemon: BaseProcess | None = None

    def configure(self, *changes: tuple[str, str], name: str = "shapleyprio.toml") -> Path:
        """Writes a configuration that the daemon's user alone may read.

        Args:
            changes: what is replaced in a good one, by what.
            name: of the file.
        """
        file = self.folder / "etc" / name
        self.consortium.configure(file=file)
        text = file.read_text()
        socket = ("[service]", f'[service]\nsocket = "{self.folder}/run/socket"')
        for old, new in (socket, *changes):
            assert old in text
            text = text.replace(old, new)
        file.write_text(text)
        os.chown(file, 0, pwd.getpwnam(DAEMON).pw_gid)
        file.chmod(0o640)
        return file

    def start(self) -> None:
        """Starts the daemon as its own user; nobody else reads what is its own."""
        files = (self.folder / "out", self.folder / "log")
        words, environment = ["daemon"], self.environment()
        self._daemon = forked.start(
            words, environment, *files, user=DAEMON, readable=self._readable
        )
        self.consortium.logs.append(files[1])

    def log(self) -> str:
        """What the daemon has logged."""
        return (self.folder / "log").read_text()

    def is_steered(self) -> bool:
        """Whether the daemon runs."""
        return self._daemon is not None and self._daemon.is_alive()

    def stop(self) -> None:
        """SIGTERM, as systemd does it, to a daemon that may run no more."""
        if self._daemon is not None:
            self._daemon.terminate()
            self._daemon.join(COMMAND_SECONDS)

    def on_the_head_node(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of the admin's, as the daemon's user."""
        return forked.run(
            words,
            self.environment(),
            timeout=COMMAND_SECONDS,
            user=DAEMON,
            readable=self._readable,
        )

    @property
    def socket(self) -> str:
        return f"unix:{self.folder}/run/socket"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.consortium.metrics_port}"

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **self.consortium._environment(),
            "SHAPLEYPRIO_CONFIG": str(self.consortium.config_file),
            **more,
        }

    def ask(self, user: str, *words: str, url: str) -> subprocess.CompletedProcess[str]:
        """A command of that user's, who knows the daemon's address."""
        environment = self.environment()
        del environment["SHAPLEYPRIO_CONFIG"]
        return forked.run([*words, "--url", url], environment, timeout=COMMAND_SECONDS, user=user)

    def as_user(self, user: str, *words: str, stdin: str = "") -> str:
        """What a program prints that a user runs."""
        account = pwd.getpwnam(user)
        done = subprocess.run(
            words,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            cwd="/",
            env=dict(self.consortium.cluster.environment),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=True,
        )
        return done.stdout

    def submit(self, user: str, account: str, seconds: int = 60) -> int:
        """A job on all processors, of so many seconds."""
        words = [f"--account={account}", f"--ntasks={ALL_CPUS}", "--time=10", "--output=/dev/null"]
        return int(self.as_user(user, "sbatch", "--parsable", *words, f"--wrap=sleep {seconds}"))

    def occupy(self) -> None:
        """Lets a guest take all processors, and jobs of both users wait; returns when they do."""
        self.consortium.occupy()
        self.own = self.submit(OWNER, "alpha")
        self.others = [self.submit(OTHER, "alpha"), self.submit(OTHER, "beta")]

    def await_ranks(self) -> None:
        """Waits until the daemon has given points to the three jobs, and knows the ranks."""

        def steers() -> bool:
            assert self.is_steered(), self.log()
            jobs = self.consortium.waiting().values()
            return sum(bool(job.site_factor) for job in jobs) == 3

        def ranked() -> bool:
            asked = self.ask(DAEMON, "explain", str(self.own), url=self.socket)
            return RANKED.search(asked.stdout) is not None

        self.consortium.until(steers, what="the daemon to have given points to three jobs")
        # Slurm has the points before the cycle that gave them is recorded
        self.consortium.until(ranked, what="the daemon to know the ranks")

    def credential(self, user: str, said: str) -> str:
        socket = self.consortium.cluster.paths.munge_socket
        return self.as_user(user, "munge", f"--socket={socket}", stdin=said).strip()

    def request(self, target: str, credential: str | None) -> tuple[int, Any]:
        """Status and answer of a request over the network."""
        headers = {} if credential is None else {"Authorization": f"Munge {credential}"}
        port = self.consortium.metrics_port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=COMMAND_SECONDS)
        try:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()
