"""Processes of a private cluster that do not end by themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from shapleyprio.lab.testbed.processes import MARKER, end_stuck_steps, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WAITS = (
    "import threading; lock = threading.Lock(); lock.acquire(); print(flush=True); lock.acquire()"
)
HAS_A_CHILD = "import subprocess; subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL); "
SLEEPS = "import time; print(flush=True); time.sleep(600)"


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[[str, str], subprocess.Popen[bytes]]]:
    """Starts a step that runs this program in Python, of the cluster in this directory."""
    steps: list[subprocess.Popen[bytes]] = []
    slurmstepd = tmp_path / "slurmstepd"
    slurmstepd.symlink_to(sys.executable)

    def start(program: str, directory: str) -> subprocess.Popen[bytes]:
        steps.append(
            subprocess.Popen(
                [slurmstepd, "-c", program], env={MARKER: directory}, stdout=subprocess.PIPE
            )
        )
        assert steps[-1].stdout is not None
        steps[-1].stdout.readline()
        return steps[-1]

    yield start
    for step in steps:
        step.kill()
        step.communicate()


def test_a_step_that_has_ended_its_job_and_waits_for_a_thread_for_ever_is_killed(
    begin: Callable[[str, str], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    stuck = begin(WAITS, str(tmp_path))
    others = [
        begin(HAS_A_CHILD + WAITS, str(tmp_path)),
        begin(SLEEPS, str(tmp_path)),
        begin(WAITS, "/elsewhere"),
    ]
    suspects: frozenset[psutil.Process] = frozenset()

    def looks_stuck() -> bool:
        nonlocal suspects
        suspects = end_stuck_steps(tmp_path, frozenset())
        return bool(suspects)

    wait_until(looks_stuck, real_seconds=10, what="the step to wait")
    assert [suspect.pid for suspect in suspects] == [stuck.pid]
    assert stuck.poll() is None
    assert end_stuck_steps(tmp_path, suspects) == frozenset()
    assert stuck.wait(10) < 0
    assert [other.poll() for other in others] == [None] * 3
