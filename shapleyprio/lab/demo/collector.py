"""A private Prometheus on loopback, beside a demo that people watch."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from shapleyprio.lab.demo.stage import DemoError
from shapleyprio.lab.testbed.detached import last_words, start_detached, wait_or_kill
from shapleyprio.lab.testbed.machine import SEARCH_PATH, reserved_ports

SCRAPE_SECONDS = 1  # about once a cycle, on the accelerated clock
READY_SECONDS = 30
END_SECONDS = 10
RETRY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where things answer, each as HOST:PORT.

    Attributes:
        daemon: its status page and metrics.
        prometheus: what collects the metrics.
    """

    daemon: str
    prometheus: str


@contextmanager
def reserved() -> Iterator[Addresses]:
    """Yields two addresses on loopback that nobody uses, and that no private cluster takes."""
    with reserved_ports(2) as base:
        yield Addresses(f"127.0.0.1:{base}", f"127.0.0.1:{base + 1}")


@contextmanager
def collecting(addresses: Addresses | None, *, directory: Path) -> Iterator[list[str]]:
    """Runs Prometheus, if it is installed, to read the daemon; ends it afterwards.

    Args:
        addresses: of both; None starts nothing.
        directory: of the demo's state; with the cluster in it, Prometheus is cleared away.

    Yields:
        lines for people: where to look.

    Raises:
        DemoError: Prometheus does not start.
    """
    if addresses is None:
        yield []
        return
    found = shutil.which("prometheus", path=SEARCH_PATH)
    lines = [
        f"status page: http://{addresses.daemon}/",
        f"metrics: http://{addresses.daemon}/metrics",
    ]
    end = ["Ctrl-C ends everything.", ""]
    if found is None:
        yield [*lines, "Prometheus: not installed, so the metrics are not collected", *end]
        return
    with _prometheus(found, addresses, directory):
        yield [*lines, f"Prometheus: http://{addresses.prometheus}/", *end]


@contextmanager
def _prometheus(program: str, addresses: Addresses, directory: Path) -> Iterator[None]:
    # deferred: without psutil the demo plays on the simulated Slurm, which nobody can watch
    from shapleyprio.lab.testbed.processes import MARKER

    file = directory / "prometheus.yml"
    file.write_text(configuration(addresses.daemon), encoding="utf-8")
    log = directory / "prometheus.log"
    process = start_detached(
        [
            program,
            f"--config.file={file}",
            f"--storage.tsdb.path={directory / 'prometheus'}",
            f"--web.listen-address={addresses.prometheus}",
        ],
        # by the mark, the cluster's guard ends it even if we are killed
        environment={**os.environ, MARKER: str(directory)},
        log=log,
    )
    try:
        _await_ready(process, f"http://{addresses.prometheus}/-/ready", log)
        yield
    finally:
        process.terminate()
        wait_or_kill(process, END_SECONDS)


def configuration(daemon: str) -> str:
    """Configures what Prometheus reads and how often; the alerts need the name of the job."""
    return (
        f"global:\n  scrape_interval: {SCRAPE_SECONDS}s\n"
        f"scrape_configs:\n  - job_name: shapleyprio\n"
        f"    static_configs:\n      - targets: ['{daemon}']\n"
    )


def _await_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=READY_SECONDS):  # noqa: S310 - our own, on loopback
                return
        except (URLError, OSError):
            time.sleep(RETRY_SECONDS)
    raise DemoError(f"Prometheus does not start: {last_words(log)}")
