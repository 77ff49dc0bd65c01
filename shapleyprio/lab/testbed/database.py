"""The MariaDB of a private Slurm, in which slurmdbd keeps the accounting."""

from __future__ import annotations

import shutil
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from shapleyprio.lab.testbed.configuration import ACCOUNTING_DATABASE, ClusterPaths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MARIADB_OPTIONS = (  # small files, no waiting for the disk: the data is thrown away
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-lock-wait-timeout=900",
    "--innodb-doublewrite=0",
    "--skip-name-resolve",
)

INSTALL_SECONDS = 600
"""On a machine that has much else to do."""


class Database:
    """A MariaDB that listens on a socket in the cluster's directory only.

    Args:
        paths: of the cluster.
        run: runs a command in the cluster's environment, and raises TestbedError if it fails.
    """

    def __init__(self, paths: ClusterPaths, run: Callable[..., str]) -> None:
        self._paths = paths
        self._run = run
        self._run_directory = paths.directory / "run"  # it tidies its tmpdir up: none to share

    @property
    def daemon(self) -> list[str]:
        """The command that serves it."""
        return [
            *("mariadbd", "--no-defaults", f"--datadir={self._paths.database}"),
            *(f"--user={self._paths.user}", f"--socket={self._paths.database_socket}"),
            *("--skip-networking", *MARIADB_OPTIONS),
            *(f"--pid-file={self._run_directory}/mariadbd.pid", f"--tmpdir={self._run_directory}"),
        ]

    def fill(self, prepared: Path | None) -> None:
        """Makes its files, unless they are there.

        Args:
            prepared: such files to copy.
        """
        data, user = self._paths.database, self._paths.user
        if data.exists():
            return
        if prepared is not None:
            shutil.copytree(prepared, data)
            return
        self._run(
            *("mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--user={user}"),
            *("--auth-root-authentication-method=socket", f"--auth-root-socket-user={user}"),
            *("--skip-test-db", f"--tmpdir={self._run_directory}", *MARIADB_OPTIONS),
            timeout=INSTALL_SECONDS,
        )

    def answers(self) -> bool:
        """Returns whether it accepts connections."""
        with suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self._paths.database_socket))
            return True
        return False

    def create_accounting(self) -> None:
        """Creates slurmdbd's database; slurmdbd 26.05 would check the server's settings first."""
        statement = f"CREATE DATABASE IF NOT EXISTS {ACCOUNTING_DATABASE}"
        options = (f"--socket={self._paths.database_socket}", f"--user={self._paths.user}")
        # a certificate made today is not valid on a clock that starts in the past
        self._run("mariadb", "--no-defaults", "--skip-ssl", *options, f"--execute={statement}")
