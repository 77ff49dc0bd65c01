"""Private database servers for tests, each in a directory of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shapleyprio.testbed.processes import wait_until

PLACES = os.pathsep.join(
    [*map(str, Path("/usr/lib/postgresql").glob("*/bin")), "/usr/sbin", os.environ["PATH"]]
)
PATIENCE_SECONDS = 60.0


@contextmanager
def server(kind: str) -> Iterator[str]:
    """URL of an empty database on a server that only we can reach; skips where there is none.

    Args:
        kind: ``postgresql`` or ``mariadb``.
    """
    start = {"postgresql": _postgresql, "mariadb": _mariadb}[kind]
    # not where a test has its files: the server's user gets there, and its socket's path is short
    place = tempfile.TemporaryDirectory(prefix="store-", dir="/tmp")
    with place as folder, start(Path(folder)) as url:
        yield url


@contextmanager
def _postgresql(folder: Path) -> Iterator[str]:
    psycopg = pytest.importorskip("psycopg")
    user = _user(folder, "postgres")
    data = str(folder / "data")
    _run(user, "initdb", "-D", data, "-U", "shapleyprio", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = ("-c", "listen_addresses=", "-c", "fsync=off", "-k", str(folder))
    place = {"host": str(folder), "user": "shapleyprio", "dbname": "postgres"}
    with _running(user, lambda: psycopg.connect(**place), "postgres", "-D", data, *options):
        yield f"postgresql+psycopg://shapleyprio@/postgres?host={folder}"


@contextmanager
def _mariadb(folder: Path) -> Iterator[str]:
    pymysql = pytest.importorskip("pymysql")
    user = _user(folder, "mysql")
    place = ("--no-defaults", f"--datadir={folder / 'data'}", f"--tmpdir={folder}")
    own = ("--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
    _run(user, "mariadb-install-db", *place, *own)
    file = folder / "socket"
    options = (f"--socket={file}", "--skip-networking", f"--pid-file={folder / 'pid'}")
    access = {"unix_socket": str(file), "user": "root"}
    with _running(user, lambda: pymysql.connect(**access), "mariadbd", *place, *options):
        with pymysql.connect(**access) as connection:
            connection.cursor().execute("CREATE DATABASE shapleyprio")
        yield f"mariadb+pymysql://root@localhost/shapleyprio?unix_socket={file}"


def _user(folder: Path, name: str) -> str:
    """Who runs the server, which no root may be; the folder is theirs."""
    if os.getuid() != 0:
        return getpass.getuser()
    try:
        shutil.chown(folder, name)
    except LookupError:
        pytest.skip(f"there is no user {name}")
    folder.chmod(0o755)
    return name


def _program(name: str) -> str:
    found = shutil.which(name, path=PLACES)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def _run(user: str, name: str, *arguments: str) -> None:
    done = subprocess.run(
        [_program(name), *arguments],
        user=user,
        cwd="/",
        env={"PATH": PLACES},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def _running(user: str, connect: Callable[[], Any], name: str, *arguments: str) -> Iterator[None]:
    """A server in the foreground, from when one can connect on."""
    command: Sequence[str] = [_program(name), *arguments]
    process = subprocess.Popen(
        command, user=user, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def answers() -> bool:
        assert process.poll() is None, f"{name} ended at once"
        try:
            connect().close()
        except Exception:  # noqa: BLE001  # each driver has its own
            return False
        return True

    try:
        wait_until(answers, real_seconds=PATIENCE_SECONDS, what=f"{name} to answer")
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
