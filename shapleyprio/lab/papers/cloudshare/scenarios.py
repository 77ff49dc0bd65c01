"""The three scenarios of CloudShare's section 5.1: whose users and processors are whose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from shapleyprio.common.wording import HOUR
from shapleyprio.lab.papers.cloudshare.brokers import Ints, Queues
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


def seeded(*parts: str | int) -> Random:
    """Returns a generator whose draws depend on all parts, and on nothing else."""
    return Random("/".join(map(str, parts)))  # noqa: S311  # an experiment, no secret


def seed_from(random: Random) -> int:
    """Draws the seed of another generator."""
    # random() is the one draw that Python promises never to change
    return int(random.random() * 2**53)
