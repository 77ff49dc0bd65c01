"""Takes times, and says what they were taken of and on what."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter


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
    """

    name: str
    what: str
    value: float
    unit: str
    runs: int = 1
    worst: float
    below: float | None

    @property
    def met(self) -> bool | None:
        """Whether the target was reached, None without one."""
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
    """This machine."""
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        cpu=_cpu_model(Path("/proc/cpuinfo")) or platform.processor() or platform.machine(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
    )


def seconds_of(action: Callable[[], object]) -> float:
    """How long it takes."""
    began = perf_counter()
    action()
    return perf_counter() - began


def of_runs(
    name: str, what: str, values: Sequence[float], *, unit: str, below: float | None
) -> Measurement:
    """The median of several runs."""
    return Measurement(
        name=name,
        what=what,
        value=median(values),
        unit=unit,
        runs=len(values),
        worst=max(values),
        below=below,
    )


def _cpu_model(cpuinfo: Path) -> str:
    if not cpuinfo.exists():
        return ""
    lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")
