"""Small experiments to test with."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shapleyprio.lab.experiment.cells import Cell, Experiment, Row
from shapleyprio.replay.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Square:
    """Squares a number, and writes into a file that it has done so."""

    number: int
    trail: str
    seed: int = 0

    @property
    def name(self) -> str:
        return f"square-{self.number}"

    def run(self) -> list[Row]:
        with Path(self.trail).open("a") as file:
            file.write(f"{self.number}\n")
        return [
            {"number": self.number, "how": how, "value": float(self.number**power)}
            for how, power in (("square", 2), ("cube", 3))
        ]


@dataclass(frozen=True, slots=True)
class Failing:
    """Cannot be run."""

    name: str = "failing"

    def run(self) -> list[Row]:
        raise PolicyError("nobody can run this; leave it out")


@dataclass(frozen=True, slots=True)
class Dying:
    """Takes its process with it."""

    number: int

    @property
    def name(self) -> str:
        return f"dying-{self.number}"

    def run(self) -> list[Row]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []


def experiment_of(
    cells: Sequence[Cell], *, name: str = "squares", inputs: Sequence[Path] = ()
) -> Experiment:
    return Experiment(
        name=name,
        description="powers of numbers",
        cells=cells,
        by=("how",),
        value="value",
        paired=("number",),
        inputs=inputs,
    )


def squares(trail: Path, count: int, *, seed: int = 0) -> Experiment:
    return experiment_of([Square(number, str(trail), seed) for number in range(count)])


def runs_in(trail: Path) -> list[int]:
    """The numbers squared so far."""
    return sorted(map(int, trail.read_text().split())) if trail.exists() else []


USERS = 4
BUSY = [(10 + job // 3, job % USERS + 1, 3 + job % 7, 1 + job % 2) for job in range(60)]
"""(submit, user, run time, processors): more than three processors can do at once."""


def write_log(file: Path, *, header: str = "; MaxProcs: 3\n") -> Path:
    """A log in SWF, whose jobs contend for the processors."""
    lines = (
        f"{job} {submit} 2 {seconds} {processors} -1 -1 -1 -1 -1 1 {user} 1 -1 1 -1 -1 -1\n"
        for job, (submit, user, seconds, processors) in enumerate(BUSY, start=1)
    )
    file.write_text(header + "".join(lines))
    return file
