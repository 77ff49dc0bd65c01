"""One period of a log in one of CloudShare's scenarios (section 5.1): how fair algorithms are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.wording import DAY, HOUR
from shapleyprio.fairness.shapley import shapley
from shapleyprio.lab.experiment.cells import Row
from shapleyprio.lab.experiment.logs import log_of
from shapleyprio.lab.experiment.windows import seed_from, seeded, window_at_random
from shapleyprio.lab.papers.cloudshare.brokers import ALGORITHMS, Ints, Queues, total_waits
from shapleyprio.replay.workloads.choices import Shares
from shapleyprio.replay.workloads.dealing import deal
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Consortium, Window, Workload, workload_of

ORGANIZATIONS = 5


@dataclass(frozen=True, slots=True)
class Scenario:
    """How a federation is made.

    Attributes:
        shares: how processors are dealt out.
        local_users: whether some users are local to their organization, and make background load.
    """

    shares: Shares
    local_users: bool


SCENARIOS: Mapping[int, Scenario] = {
    1: Scenario(shares="uniform", local_users=False),
    2: Scenario(shares="zipf", local_users=False),
    3: Scenario(shares="uniform", local_users=True),
}
"""By their numbers in the paper."""


@dataclass(frozen=True, slots=True)
class Federation:
    """What is simulated.

    Attributes:
        owned: int64[organizations], processors each brings.
        federated: units of work that go to the brokers.
        background: units of work that stay on their own organization's processors.
    """

    owned: Ints
    federated: Queues
    background: Queues


def dealt(log: Log, scenario: Scenario, *, processors: int, random: Random) -> Consortium:
    """Deals users and processors out to five organizations; the same users in every scenario.

    Raises:
        WorkloadError: the log names no users, or there are too few processors.
    """
    seed, shares = seed_from(random), scenario.shares
    return deal(log, ORGANIZATIONS, shares=shares, processors=processors, seed=seed)


def federation_of(
    log: Log,
    consortium: Consortium,
    scenario: Scenario,
    *,
    window: Window,
    random: Random,
    clock: int = 0,
) -> Federation:
    """Cuts the jobs of a window into units of one processor for one hour.

    The paper does not say how its third scenario divides users into the two categories; here
    each user is of either one with equal chances.

    Args:
        log: all jobs.
        consortium: whose they are.
        scenario: which says whether there are local users.
        window: whose jobs are taken.
        random: draws the local users.
        clock: what the clock shows when the window begins, in seconds.

    Raises:
        WorkloadError: there is no job in the window.
    """
    workload = workload_of(log, consortium, window=window, wide="expand")
    local = np.zeros(len(workload.job), dtype=bool)
    if scenario.local_users:
        categories = deal(log, 2, shares="uniform", processors=2, seed=seed_from(random))
        local = categories.organization[workload.position] == 1
    return Federation(
        consortium.owned, _queues(workload, ~local, clock), _queues(workload, local, clock)
    )


def _queues(workload: Workload, taken: NDArray[np.bool_], clock: int) -> Queues:
    hours = -(-workload.processing_time[taken] // HOUR)
    organizations = np.arange(len(workload.organizations) + 1)
    return Queues(
        first=np.searchsorted(workload.organization[taken], organizations).astype(np.int64),
        release=workload.release[taken] + clock,
        units=workload.processors[taken] * hours,
    )


@dataclass(frozen=True, slots=True)
class PeriodFairness:
    """What an algorithm made of a federation.

    Attributes:
        waits: seconds that each organization's units waited in all, in the coalition of all.
        fair_waits: the Shapley value of that, exactly; it may be negative for who only lends.
    """

    waits: tuple[int, ...]
    fair_waits: tuple[Fraction, ...]

    @property
    def unfairness(self) -> Fraction:
        """Σ|wait − fair wait|, in seconds: the distance in the Manhattan metric."""
        pairs = zip(self.waits, self.fair_waits, strict=True)
        return sum((abs(wait - fair) for wait, fair in pairs), Fraction(0))


def fairness_of(algorithm: str, federation: Federation, *, seed: int = 0) -> PeriodFairness:
    """Simulates all 2^k − 1 coalitions under an algorithm.

    A coalition's value is the total wait of its members in its own simulation; the Shapley value
    of these is the fair wait.

    Raises:
        ReplayError: as for `total_waits`.
    """
    owned, federated, background = federation.owned, federation.federated, federation.background
    coalitions = range(1, 2 ** len(owned))
    waits = [
        total_waits(algorithm, coalition, owned, federated, background, seed=seed)
        for coalition in coalitions
    ]
    return PeriodFairness(waits[-1], shapley([0, *map(sum, waits)]))


def points(unfairness: Mapping[str, Fraction]) -> dict[str, int]:
    """Counts the rivals that each algorithm is more fair than; of equals none gets a point.

    >>> points({"A": Fraction(60), "B": Fraction(80), "C": Fraction(60)})
    {'A': 1, 'B': 0, 'C': 1}
    """
    return {
        algorithm: sum(mine < other for other in unfairness.values())
        for algorithm, mine in unfairness.items()
    }


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
