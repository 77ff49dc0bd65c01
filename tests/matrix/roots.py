"""Debian roots in layers, kept between calls, and commands that run in throw-away copies of them.

A layer is a folder that holds what one step added: the base made by mmdebstrap, the packages
needed for building, the tests' libraries. A command sees its layers through an overlay; what it
changes goes into a folder of its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from shapleyprio.lab.testbed.machine import SlurmUnavailableHere, install
from tests.matrix.suites import BASE_PACKAGES, Suite

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".matrix"
ENTER = Path(__file__).parent / "enter"
NAMESPACES = ("--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc")
SERVICES_STAY_OFF = """
mkdir -p "$1/usr/sbin"
printf '#!/bin/sh\\nexit 101\\n' >"$1/usr/sbin/policy-rc.d"
chmod 755 "$1/usr/sbin/policy-rc.d"
"""
LAST_LINES = 120
"""Lines of a log that the message of an error shows."""

ONLINE_ENVIRONMENT = {"PIP_CERT": "/etc/ssl/certs/ca-certificates.crt"}


class MatrixError(RuntimeError):
    """A step failed; the message is for the person who started it."""


class NotPossibleError(RuntimeError):
    """This machine cannot make roots; the message says why."""


@dataclass(slots=True)
class Processes:
    """What is running now, so that Ctrl-C can end all of it."""

    _running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)
    _ended: bool = False

    def run(self, argv: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
        """Runs a command to its end, its output into a file, and returns its exit code."""
        with log.open("ab") as output:
            with self._lock:
                if self._ended:
                    raise MatrixError("stopped")
                process = subprocess.Popen(
                    argv,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                self._running.add(process)
            try:
                return process.wait()
            finally:
                with self._lock:
                    self._running.discard(process)

    def end(self) -> None:
        """Kills everything that runs, and lets nothing start any more."""
        with self._lock:
            self._ended = True
            for process in self._running:
                process.kill()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command to run in a root.

    Attributes:
        command: the program and its arguments.
        log: the file for what it prints.
        online: whether it may use the machine's network; else it has a loopback interface only.
        binds: folder of the machine -> where it is in the root.
        environment: variables beside PATH and HOME.
    """

    command: Sequence[str]
    log: Path
    online: bool = False
    binds: Mapping[Path, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


class Roots:
    """Makes and uses the roots of one suite.

    Args:
        suite: which.
        processes: where what runs is known.
        mirror: of Debian's packages; None for the one that mmdebstrap prefers.
        kept: the folder of all roots.
    """

    def __init__(
        self, suite: Suite, processes: Processes, *, mirror: str | None = None, kept: Path = KEPT
    ) -> None:
        self.suite = suite
        self.folder = kept / suite.release
        self._logs = kept / "log"
        self._processes = processes
        self._mirror = mirror

    def log_file(self, name: str) -> Path:
        """The file with what a step has printed."""
        return self._logs / f"{self.suite.release}-{name}.log"

    def log(self, name: str) -> Path:
        """An empty file for what a step prints."""
        file = self.log_file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
        return file

    def base(self) -> Path:
        """The layer with Debian and Slurm."""
        recipe = (self.suite.name, *BASE_PACKAGES)
        return self._layer("base", recipe, self._bootstrap)

    def layer(self, name: str, below: Sequence[Path], step: Step, recipe: Sequence[str]) -> Path:
        """The layer that a step adds to those below it.

        Args:
            name: of its folder.
            below: the layers that the step sees, topmost first.
            step: what makes it.
            recipe: what it depends on: it is made anew when any of it changes.
        """

        def make(made: Path) -> None:
            self.change(made.parent, below, step)
            (made.parent / "changes").rename(made)

        return self._layer(name, (*(str(one) for one in below), *recipe), make)

    def change(self, upper: Path, layers: Sequence[Path], step: Step) -> None:
        """Runs a step over these layers; what it changes is in ``upper/changes`` afterwards.

        Raises:
            MatrixError: it failed.
        """
        binds = [f"{source}:{target}" for source, target in step.binds.items()]
        network = [] if step.online else ["--net"]
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            **(ONLINE_ENVIRONMENT if step.online else {}),
            **step.environment,
        }
        code = self._processes.run(
            [
                *("unshare", *NAMESPACES, *network, "--", str(ENTER)),
                *(":".join(str(layer) for layer in layers), str(upper)),
                *("online" if step.online else "offline", *binds, "--", *step.command),
            ],
            step.log,
            environment,
        )
        if code != 0:
            raise MatrixError(failure(step.log, code))

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for changes, deleted in the end."""
        self.folder.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=self.folder))
        try:
            folder.chmod(0o755)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _layer(self, name: str, recipe: Sequence[str], make: Callable[[Path], None]) -> Path:
        wanted = hashlib.sha256("\n".join(recipe).encode()).hexdigest()
        layer, stamp = self.folder / name, self.folder / f"{name}.recipe"
        if layer.is_dir() and stamp.is_file() and stamp.read_text() == wanted:
            return layer
        stamp.unlink(missing_ok=True)
        shutil.rmtree(layer, ignore_errors=True)
        with self.scratch() as folder:
            make(folder / "layer")
            (folder / "layer").rename(layer)
        stamp.write_text(wanted)
        return layer

    def _bootstrap(self, made: Path) -> None:
        log = self.log("base")
        code = self._processes.run(
            [
                # in spaces of its own: what it mounts ends with it
                *("unshare", *NAMESPACES, "--mount-proc", "--"),
                *("mmdebstrap", "--variant=apt", f"--include={','.join(BASE_PACKAGES)}"),
                # the Release file of a suite in the making expires when it is not renewed in time
                '--aptopt=Acquire::Check-Valid-Until "false"',
                # no waiting for the disk: a root is made anew sooner than it is repaired
                "--dpkgopt=force-unsafe-io",
                f"--setup-hook={SERVICES_STAY_OFF}",
                *(self.suite.name, str(made), *([self._mirror] if self._mirror else [])),
            ],
            log,
            os.environ,
        )
        if code != 0:
            raise MatrixError(failure(log, code))


def failure(log: Path, code: int) -> str:
    """The last lines of a log, for the message of an error."""
    words = log.read_text(errors="replace").rstrip().split("\n")[-LAST_LINES:]
    return "\n".join([f"exit code {code}, the end of {log}:", *words])


def require_roots() -> None:
    """Sees to it that roots can be made here; installs mmdebstrap if it is missing.

    Raises:
        NotPossibleError: they cannot.
    """
    if os.geteuid() != 0:
        raise NotPossibleError("only root can make and mount Debian roots")
    with tempfile.TemporaryDirectory() as folder:
        mount = f"mount -t tmpfs none {folder} && mkdir {folder}/{{l,u,w,m}} && mount -t overlay "
        mount += f"none -o lowerdir={folder}/l,upperdir={folder}/u,workdir={folder}/w {folder}/m"
        probe = ["unshare", *NAMESPACES, "--net", "--", "bash", "-c", mount]
        try:
            done = subprocess.run(probe, check=False, capture_output=True, text=True)
        except OSError as error:
            raise NotPossibleError(f"unshare cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise NotPossibleError(f"mounts are not allowed here: {done.stderr.strip()[:200]}")
    if shutil.which("mmdebstrap") is None:
        try:
            install(["mmdebstrap"])
        except SlurmUnavailableHere as error:
            raise NotPossibleError(f"mmdebstrap is not installed: {error}") from error
