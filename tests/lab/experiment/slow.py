"""An experiment that is never finished: one quick cell, and some that wait for ever."""

from __future__ import annotations

import time
from dataclasses import dataclass

from shapleyprio.lab.experiment.cells import Experiment, Row
from tests.lab.experiment.examples import experiment_of


@dataclass(frozen=True, slots=True)
class Patient:
    """The first one is quick, the others never end."""

    number: int

    @property
    def name(self) -> str:
        return "quick" if self.number == 0 else f"slow-{self.number}"

    def run(self) -> list[Row]:
        while self.number:
            time.sleep(1)
        return [{"number": 0, "how": "quick", "value": 0.0}]


def slow_experiment() -> Experiment:
    return experiment_of([Patient(number) for number in range(4)])
