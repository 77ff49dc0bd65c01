"""Takes times, and says what they were taken of and on what."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

MakeBar = Callable[[str, int | None], Callable[[int], None]]
"""Makes a progress bar: what is done, and how much of it -> to be called with how much is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchParameters:
    """Parameters of every benchmark.

    Attributes:
        folder: for what it writes; ingesting a million records needs half a gigabyte.
        bar: makes progress bars.
        records: how many to ingest.
        stores: URLs of empty databases; empty for a file.
        logs: directory with real logs; None to do without.
        most_organizations: how many there are in replays at most.
        pending: how many jobs wait in the real Slurm.
        channels: by which to write into it; empty for all.
        adapters: to measure beside each other, instead of all else.
        poll_intervals: seconds of the daemon from cycle to cycle.
    """

    folder: Path
    bar: MakeBar
    records: int
    stores: tuple[str, ...]
    logs: Path | None
    most_organizations: int
    pending: int
    channels: tuple[str, ...]
    adapters: tuple[str, ...]
    poll_intervals: tuple[int, ...]

    @property
    def real_logs(self) -> Path:
        """The logs, where a benchmark is refused without any."""
        assert self.logs is not None
        return self.logs


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One line of the answer.

    Attributes:
        name: of the benchmark.
        what: was measured.
        value: the median, if there were several runs.
        unit: of the value.
        runs: how many there were.
        worst: of the runs.
        below: the target: the value is to stay below it; None if there is none.
        above: the target of what is to be large, instead.
    """

    name: str
    what: str
    value: float
    unit: str
    runs: int = 1
    worst: float
    below: float | None = None
    above: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target was reached, None without one."""
        if self.above is not None:
            return self.value > self.above
        return None if self.below is None else self.value < self.below


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What it was measured on.

    Attributes:
        cores: that this process may use.
        cpu: its model.
        python: implementation and version.
    """

    cores: int
    cpu: str
    python: str


def machine() -> Machine:
    """Describes this machine."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        cpu=_cpu_model(Path("/proc/cpuinfo")) or platform.processor() or platform.machine(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
    )


def seconds_of(action: Callable[[], object]) -> float:
    """Returns how long an action takes."""
    began = perf_counter()
    action()
    return perf_counter() - began


def repeatedly(action: Callable[[], T], runs: int, progress: Callable[[int], None]) -> Iterator[T]:
    """Does something so often; yields what came of it each time."""
    for done in range(1, runs + 1):
        yield action()
        progress(done)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program in a process of its own took, from its start to its end.

    Attributes:
        seconds: on the wall.
        megabytes: its peak memory.
        last_line: of what it printed.
    """

    seconds: float
    megabytes: float
    last_line: str


def run_apart(command: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> Ran:
    """Runs a program in a process of its own.

    The system counts towards its peak what this process had itself before, so this one should
    not have grown larger than the program will.

    Args:
        command: the program and its arguments.
        progress: called with every whole number that it prints as a line.

    Raises:
        RuntimeError: it failed.
    """
    began = perf_counter()
    last = ""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last = line.strip() or last
            if line.strip().isdigit():
                progress(int(line))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{shlex.join(command)} ended with {process.returncode}: {last}")
    return Ran(perf_counter() - began, usage.ru_maxrss * 1024 / 1e6, last)


def of_runs(
    name: str,
    what: str,
    values: Sequence[float],
    *,
    unit: str,
    below: float | None = None,
    above: float | None = None,
) -> Measurement:
    """Returns the median of several runs."""
    return Measurement(
        name=name,
        what=what,
        value=median(values),
        unit=unit,
        runs=len(values),
        worst=max(values) if above is None else min(values),
        below=below,
        above=above,
    )


def mean_of(name: str, what: str, values: Sequence[float], *, unit: str) -> Measurement:
    """Returns the mean of several runs."""
    return replace(of_runs(name, what, values, unit=unit), value=fmean(values))


def _cpu_model(cpuinfo: Path) -> str:
    if not cpuinfo.exists():
        return ""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")
