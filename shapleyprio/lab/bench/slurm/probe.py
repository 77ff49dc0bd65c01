"""Asks slurmctld for one job again and again, in a process of its own, and prints how long it took.

``python -m shapleyprio.lab.bench.slurm.probe JOB`` prints a line for each answer: the monotonic
second at which it was asked, and for how many seconds. SIGTERM ends it after the running question.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.errors import TestbedError
from shapleyprio.lab.testbed.packages import program

PAUSE_SECONDS = 0.05
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answered:
    """One question.

    Attributes:
        second: at which it was asked, on the monotonic clock.
        seconds: until it was answered.
    """

    second: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Stretch:
    """From one second of the monotonic clock to another."""

    begin: float
    end: float

    def holds(self, answered: Answered) -> bool:
        """Returns whether a question was open at some time in it."""
        return answered.second < self.end and answered.second + answered.seconds > self.begin


class Probe:
    """The running process.

    Args:
        log: where its lines are.
    """

    def __init__(self, log: Path) -> None:
        self._log = log

    def answers(self) -> list[Answered]:
        """Returns all answers so far."""
        lines = self._log.read_text(encoding="utf-8").split("\n")[:-1]  # the last is not whole
        answers = [line.split() for line in lines]
        if broken := [words for words in answers if len(words) != 2]:
            raise TestbedError(f"squeue -j did not answer: {' '.join(broken[-1])}")
        return [Answered(float(second), float(seconds)) for second, seconds in answers]


@contextmanager
def probing(cluster: PrivateSlurm, job_id: int) -> Iterator[Probe]:
    """Starts a probe, waits until it has begun to ask, and ends it afterwards.

    Raises:
        TestbedError: a question was not answered.
    """
    log = cluster.directory / "log" / "probe.output"
    process = cluster.start_python(__name__, str(job_id), log=log)
    probe = Probe(log)
    try:
        cluster.wait_until(
            lambda: len(probe.answers()) > 1,
            real_seconds=PATIENCE_SECONDS,
            what="the answer to squeue -j",
        )
        yield probe
        process.terminate()
        if process.wait(PATIENCE_SECONDS) != 0:
            raise TestbedError(f"squeue -j was not answered: see {log}")
    finally:
        process.kill()
        process.wait()


def main(job_id: str) -> None:
    """Asks until SIGTERM."""
    stopped = Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    question = [program("squeue"), "-h", "-j", job_id]
    while not stopped.wait(PAUSE_SECONDS):
        began = time.monotonic()
        subprocess.run(question, stdout=subprocess.DEVNULL, check=True)
        print(began, time.monotonic() - began, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
