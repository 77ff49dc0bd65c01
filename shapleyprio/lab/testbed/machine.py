"""What a private Slurm needs of its machine: programs, user, host name, ports and a directory."""

from __future__ import annotations

import fcntl
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from shapleyprio.common.errors import OutputError
from shapleyprio.slurm.port import SlurmError
from shapleyprio.slurm.releases import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class TestbedError(SlurmError):
    """A daemon or a command of the private Slurm failed."""

    __test__ = False  # pytest, this is no test class


class SlurmUnavailableHere(SlurmError):  # noqa: N818 - it is a state of the machine
    """This machine cannot have a private Slurm; the message says why and what helps."""


SOCKET_PATH_LIMIT = 107  # bytes, without the closing zero
PORTS = range(20_000, 32_000)  # below those Linux gives to outgoing connections


def user_name() -> str:
    """Returns the name of the user this process runs as."""
    return pwd.getpwuid(os.geteuid()).pw_name


def loopback_host_name() -> str:
    """Returns this machine's short host name, which must lead to the loopback interface."""
    host = socket.gethostname().split(".")[0]
    remedy = f"add the line '127.0.0.1 {host}' to /etc/hosts"
    try:
        address = socket.gethostbyname(host)
    except OSError as error:
        raise SlurmUnavailableHere(f"the host name {host} does not resolve: {remedy}") from error
    if not ip_address(address).is_loopback:
        raise SlurmUnavailableHere(f"the host name {host} leads to {address}, not 127.*: {remedy}")
    return host


@contextmanager
def reserved_ports(count: int) -> Iterator[int]:
    """Yields adjacent loopback ports that no other private Slurm here is given meanwhile.

    Slurm's daemons bind them only later. Meanwhile we hold the UDP ports of the same numbers,
    which Slurm leaves alone, and no cluster is given ports of which that is not available.

    Args:
        count: how many.

    Yields:
        the first one.

    Raises:
        SlurmUnavailableHere: there are not as many.
    """
    for _ in range(200):
        base = random.randrange(PORTS.start, PORTS.stop - count)  # noqa: S311 - not a secret
        with ExitStack() as held:
            if _hold(held, socket.SOCK_DGRAM, base, count) and all_free(base, count):
                yield base
                return
    raise SlurmUnavailableHere(f"found no {count} adjacent free ports on 127.0.0.1")


def all_free(base: int, count: int) -> bool:
    """Returns whether no process listens on these loopback ports."""
    with ExitStack() as probes:
        return _hold(probes, socket.SOCK_STREAM, base, count)


def _hold(held: ExitStack, kind: socket.SocketKind, base: int, count: int) -> bool:
    """Binds these ports until the stack is closed; returns whether they were free."""
    for port in range(base, base + count):
        probe = held.enter_context(socket.socket(type=kind))
        if kind == socket.SOCK_STREAM:  # what lingers from a connection that was closed is no one
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def check_paths(directory: Path, sockets: Iterable[Path]) -> None:
    """Refuses a cluster's directory, or UNIX sockets in it, that its programs would not take."""
    if len(str(directory).split()) != 1:
        raise SlurmUnavailableHere(
            f"{directory} has a blank, which Slurm and MariaDB do not take:"
            " choose a directory without one"
        )
    for path in sockets:
        if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
            raise SlurmUnavailableHere(
                f"{path} is longer than {SOCKET_PATH_LIMIT} bytes, too long for a socket:"
                " choose a shorter directory"
            )


SEARCH_PATH = os.pathsep.join(
    dict.fromkeys(
        [
            *os.environ.get("PATH", os.defpath).split(os.pathsep),
            *("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"),
        ]
    )
)

PROGRAMS = (
    *("slurmctld", "slurmd", "slurmdbd"),
    *("sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sdiag", "sinfo", "sprio", "squeue"),
    *("munged", "mariadb", "mariadbd", "mariadb-install-db"),
)

PACKAGES = (
    *("slurmctld", "slurmd", "slurmdbd", "slurm-client"),
    *("slurm-wlm-basic-plugins", "slurm-wlm-mysql-plugin"),
    *("munge", "mariadb-server"),
)

POLICY = Path("/usr/sbin/policy-rc.d")
DPKG_LOCK = Path("/var/lib/dpkg/lock")
"""Only root may open it; dpkg's own lock on it is of another kind, and unaware of ours."""


def program(name: str) -> str:
    """Returns the absolute path of a program."""
    found = shutil.which(name, path=SEARCH_PATH)
    if found is None:
        raise SlurmUnavailableHere(f"the program {name} is not installed")
    return found


def slurm_release() -> Release:
    """Returns the release of the installed Slurm.

    Raises:
        SlurmUnavailableHere: slurmctld is missing, or names no release.
    """
    done = subprocess.run([program("slurmctld"), "-V"], capture_output=True, text=True, check=False)
    release = Release.parse(done.stdout)
    if release is None:
        raise SlurmUnavailableHere(f"slurmctld -V prints no release: {done.stdout.strip()[:80]!r}")
    return release


def missing_programs() -> list[str]:
    """Names every program that a private Slurm needs and this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name, path=SEARCH_PATH) is None]


def ensure_installed(report: Callable[[str], None]) -> None:
    """Installs what is missing, starting no service on this machine.

    Args:
        report: called with a line that names what is about to be installed.

    Raises:
        SlurmUnavailableHere: something is missing and cannot be installed.
    """
    with _one_at_a_time():
        missing = missing_programs()
        if not missing:
            return
        lack = f"this machine lacks {', '.join(missing)}"
        if shutil.which("apt-get", path=SEARCH_PATH) is None:
            raise SlurmUnavailableHere(f"{lack}, and has no apt-get to install them")
        if os.geteuid() != 0:
            raise SlurmUnavailableHere(f"{lack}: as root, apt-get install {' '.join(PACKAGES)}")
        report(f"installing {' '.join(PACKAGES)}; no service will be started")
        _install(PACKAGES)
        if missing := missing_programs():
            raise SlurmUnavailableHere(
                f"apt-get succeeded but {', '.join(missing)} are still missing"
            )


def install(packages: Sequence[str]) -> None:
    """Installs Debian packages as root, starting no service on this machine.

    Raises:
        SlurmUnavailableHere: apt-get failed.
    """
    with _one_at_a_time():
        _install(packages)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Waits until no other process of ours installs anything: apt-get would refuse to start."""
    if os.geteuid() != 0 or not DPKG_LOCK.exists():
        yield
        return
    with DPKG_LOCK.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(packages: Sequence[str]) -> None:
    with _services_stay_off():
        _apt_get("update")
        _apt_get("install", "-y", "--no-install-recommends", *packages)


@contextmanager
def _services_stay_off() -> Iterator[None]:
    """Keeps services from starting: Debian asks policy-rc.d first, and 101 forbids it."""
    try:
        with POLICY.open("x") as policy:
            policy.write("#!/bin/sh\nexit 101\n")
    except FileExistsError:
        yield  # the machine's owner has a policy already
        return
    try:
        POLICY.chmod(0o755)
        yield
    finally:
        POLICY.unlink()


def _apt_get(*arguments: str) -> None:
    done = subprocess.run(
        [program("apt-get"), "-q", *arguments],
        env={**os.environ, "PATH": SEARCH_PATH, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        complaint = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise SlurmUnavailableHere(f"apt-get {arguments[0]} failed: {complaint}")


@contextmanager
def state_directory(wanted: Path | None) -> Iterator[Path]:
    """Yields a directory for the whole state of private clusters.

    Args:
        wanted: a new or empty directory, which stays; None for one that is deleted at the end.

    Raises:
        OutputError: there is something in the wanted one, or it cannot be made.
    """
    if wanted is None:
        # a short path, for it holds UNIX sockets
        with tempfile.TemporaryDirectory(prefix="shapleyprio-", ignore_cleanup_errors=True) as made:
            yield Path(made).resolve()
        return
    try:
        wanted.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{wanted} cannot be created ({error.strerror}); name another") from None
    if any(wanted.iterdir()):
        raise OutputError(f"{wanted} is not empty; name a new directory")
    yield wanted.resolve()
