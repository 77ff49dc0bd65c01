"""From an order to integer points: nothing changes unless the order does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MINIMUM_STEP = 100_000
"""Leaves users room to order their own jobs by nice without leaving their organization's band."""

LARGEST_PRIORITY = 2**31 - 1_000_000
"""Site factor and nice reach ±(2^31 − 3); the rest is room for the nice that users ask for."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The points that an order of organizations is worth on Slurm's priority scale.

    Attributes:
        step: points between neighbors, and of the last organization: well above 0, so that nothing
            clamps at the floor and jobs without an organization come last.
    """

    step: int

    def points(self, level: int) -> int:
        """Returns the points at a level; the last organization is at level 0."""
        return (level + 1) * self.step

    def points_of(self, order: Sequence[str]) -> dict[str, int]:
        """Returns organization -> its points.

        Args:
            order: organizations, the first to be served first.

        >>> Scale(step=500).points_of(["gamma", "alpha", "beta"])
        {'gamma': 1500, 'alpha': 1000, 'beta': 500}
        """
        return {
            name: self.points(level)
            for level, name in zip(reversed(range(len(order))), order, strict=True)
        }


def scale(organizations: int, others: int, influence: int | None) -> Scale:
    """Returns the scale for a number of organizations.

    Args:
        organizations: how many there are.
        others: the most that all other priority factors together can add to a job.
        influence: points between the first and the last organization; None for strict order.

    >>> scale(3, others=1_100_000, influence=None)
    Scale(step=2000000)
    >>> scale(3, others=1_100_000, influence=1000)
    Scale(step=500)
    """
    if influence is None:
        largest_step = LARGEST_PRIORITY // max(organizations, 1)
        step = min(max(MINIMUM_STEP, _round_up(others + 1)), largest_step)
    else:
        step = max(influence // max(organizations - 1, 1), 1)
    return Scale(step)


def _round_up(number: int) -> int:
    """Rounds up to one significant digit, so that small changes change nothing."""
    unit: int = 10 ** (len(str(number)) - 1)
    return -(-number // unit) * unit
