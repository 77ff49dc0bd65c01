"""One period of one log in one scenario, under all algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from shapleyprio.common.wording import DAY
from shapleyprio.lab.experiment.cells import Row
from shapleyprio.lab.experiment.logs import log_of
from shapleyprio.lab.experiment.windows import window_at_random
from shapleyprio.lab.papers.cloudshare.brokers import ALGORITHMS
from shapleyprio.lab.papers.cloudshare.fairness import PeriodFairness, fairness_of, points
from shapleyprio.lab.papers.cloudshare.scenarios import (
    ORGANIZATIONS,
    SCENARIOS,
    Federation,
    dealt,
    federation_of,
    seeded,
)
from shapleyprio.replay.workloads.dealing import deal
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodCell:
    """A period of 24 hours, with its users and processors dealt out in several ways.

    Seed, log and number of the period set where it is, and together with the deal's number whose
    every user is: all scenarios and all numbers of processors see the same periods and users.

    Attributes:
        source: the log's file.
        log: what the log is called in the results.
        scenario: 1, 2 or 3.
        period: its number.
        processors: how many all organizations bring together; each number is one setting.
        deals: how often users are dealt out for each.
        clock: what the clock shows when the period begins, in seconds; only ψ′ depends on it.
        seed: of the experiment.
    """

    source: str
    log: str
    scenario: int
    period: int
    processors: tuple[int, ...]
    deals: int
    clock: int
    seed: int

    @property
    def name(self) -> str:
        """Unique in an experiment."""
        return f"{self.log}-scenario{self.scenario}-{self.period}"

    def run(self) -> list[Row]:
        """Returns a row for each number of processors, deal and algorithm.

        Raises:
            ReplayError: the log cannot be read, or has no such period.
        """
        log = log_of(self.source)
        window = self._window(log)
        return [
            row
            for processors, number in product(self.processors, range(self.deals))
            for row in self._compared(log, window, processors, number)
        ]

    def _window(self, log: Log) -> Window:
        everybody = deal(log, 1, shares="uniform", processors=1, seed=0)
        random = seeded(self.seed, self.log, self.period)
        return window_at_random(log, DAY, everybody, random)

    def _compared(self, log: Log, window: Window, processors: int, number: int) -> list[Row]:
        of = (self.seed, self.log, self.period, number)
        scenario = SCENARIOS[self.scenario]
        consortium = dealt(log, scenario, processors=processors, random=seeded(*of, "users"))
        federation = federation_of(
            log, consortium, scenario, window=window, random=seeded(*of, "local"), clock=self.clock
        )
        found = {
            algorithm: fairness_of(algorithm, federation, seed=number) for algorithm in ALGORITHMS
        }
        place: Row = {
            "log": self.log,
            "scenario": self.scenario,
            "period": self.period,
            "start": window.start,
            "processors": processors,
            "deal": number,
        }
        return [place | row for row in _rows(federation, found)]


def _rows(federation: Federation, found: Mapping[str, PeriodFairness]) -> list[Row]:
    units = int(federation.federated.units.sum())
    scores = points({policy: fairness.unfairness for policy, fairness in found.items()})
    return [
        {
            "policy": policy,
            "units": units,
            "background_units": int(federation.background.units.sum()),
            "total_wait": sum(fairness.waits),
            # without units nobody waits, which is fair
            "unfairness": float(fairness.unfairness / max(units, 1)),
            "points": scores[policy],
            "rivals": len(scores) - 1,
        }
        for policy, fairness in found.items()
    ]


def processors_of(system: int, divisor: int) -> int:
    """Returns the system's processors by a divisor, rounded to as many for every organization.

    >>> processors_of(64, 2)
    30
    """
    return max(system // divisor // ORGANIZATIONS, 1) * ORGANIZATIONS
