"""The programs a private Slurm needs, and how to get them on Debian and Ubuntu."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shapleyprio.lab.testbed.errors import SlurmUnavailableHere
from shapleyprio.slurm.releases import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
