"""From balances to integer priorities: the order is kept, and nothing changes unless it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shapleyprio.fairness.ledger import Course

MINIMUM_STEP = 100_000
"""Leaves users room to order their own jobs by nice without leaving their organization's band."""

LARGEST_PRIORITY = 2**31 - 1_000_000
"""Site factor and nice reach ±(2^31 − 3); the rest is room for the nice that users ask for."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where organizations stand on Slurm's priority scale.

    Attributes:
        base: points of the last organization: well above 0, so that nothing clamps at the floor
            and jobs of nobody stand behind.
        step: points between neighbours.
        holds: whether a step exceeds what all other factors together can add, so that no job of
            a lower organization ever overtakes one of a higher.
    """

    base: int
    step: int
    holds: bool

    def priority(self, rank: int) -> int:
        """Points of the organization with that rank (0 is the last)."""
        return self.base + rank * self.step


def scale(organizations: int, others: int, influence: int | None) -> Scale:
    """The scale for a number of organizations.

    Args:
        organizations: how many there are.
        others: the most that all other priority factors together can add to a job.
        influence: points between the first and the last organization; None for strict order.

    >>> scale(3, others=1_100_000, influence=None)
    Scale(base=2000000, step=2000000, holds=True)
    >>> scale(3, others=1_100_000, influence=1000)
    Scale(base=500, step=500, holds=False)
    """
    if influence is None:
        largest_step = LARGEST_PRIORITY // max(organizations, 1)
        step = min(max(MINIMUM_STEP, _round_up(others + 1)), largest_step)
    else:
        step = max(influence // max(organizations - 1, 1), 1)
    return Scale(base=step, step=step, holds=step > others)


def ranks(balances: Mapping[str, int]) -> dict[str, int]:
    """Rank of every organization by balance: 0 for the lowest.

    Args:
        balances: organization -> φ̃ − ψ, in the order of the configuration, which decides ties:
            the one listed first stands higher.

    >>> ranks({"alpha": 5, "beta": -3, "gamma": 5})
    {'beta': 0, 'gamma': 1, 'alpha': 2}
    """
    first_to_last = leading(balances)
    return {name: rank for rank, name in enumerate(reversed(first_to_last))}


def priorities(balances: Mapping[str, int], on: Scale) -> dict[str, int]:
    """Priority points of every organization; see `ranks` for the order of balances."""
    by_name = ranks(balances)
    return {name: on.priority(by_name[name]) for name in balances}


def leading(balances: Mapping[str, int]) -> list[str]:
    """Organizations from the first to be served to the last; see `ranks` for ties."""
    return sorted(balances, key=lambda name: -balances[name])


def turn(courses: Mapping[str, Course], within: int) -> int | None:
    """Seconds until the order of organizations turns, if nothing starts or ends meanwhile.

    Args:
        courses: organization -> course of its balance, in the order of the configuration.
        within: only turns in fewer seconds count.

    >>> owed, owing = Course(balance=0, slope=1, bend=0), Course(balance=5, slope=-1, bend=0)
    >>> turn({"alpha": owed, "beta": owing}, within=30)
    3
    """

    def order(seconds: int) -> list[str]:
        return leading({name: course.after(seconds) for name, course in courses.items()})

    now = order(0)
    return next((seconds for seconds in range(1, within) if order(seconds) != now), None)


def _round_up(number: int) -> int:
    """The next number with one significant digit, so that small changes change nothing."""
    unit: int = 10 ** (len(str(number)) - 1)
    return -(-number // unit) * unit
