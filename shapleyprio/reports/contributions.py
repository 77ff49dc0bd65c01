"""Ref's exact contributions over time; a schedule has them at its end only."""

from __future__ import annotations

from fractions import Fraction

from shapleyprio.fairness.shapley import shapley
from shapleyprio.replay.engine import lattice
from shapleyprio.replay.engine.values import values_at
from shapleyprio.replay.policies.coalitions import ref_world
from shapleyprio.replay.workloads.workload import Workload

MOST_WORK = 2**25
"""Jobs times coalitions up to which Ref is run once more, which takes some seconds."""

MOST_VALUES = 2**16
"""Most coalitions, over all moments, that are turned into contributions as fractions."""

FEWEST, MOST = 8, 100
"""Bounds of the number of moments."""


def is_cheap(workload: Workload) -> bool:
    """Returns whether `shapley_over_time` takes seconds rather than minutes."""
    coalitions: int = 2 ** len(workload.organizations)
    return len(workload.job) * coalitions <= MOST_WORK


def shapley_over_time(workload: Workload, seed: int) -> dict[int, tuple[Fraction, ...]]:
    """Runs Ref again, and takes every organization's Shapley value now and then.

    Args:
        workload: what Ref schedules.
        seed: of the random draws.

    Returns:
        Second of the window -> φ of each organization, exact, in part-seconds; the last second
        is the window's end.

    Raises:
        PolicyError: numbers may get larger than can be compared exactly.
    """
    k, length = len(workload.organizations), workload.window.length
    world = ref_world(workload, seed)
    wanted = max(FEWEST, min(MOST, MOST_VALUES >> k))
    found = {0: (Fraction(0),) * k}
    for second in lattice.on_one_core(world, length):
        due = second * wanted >= len(found) * length
        if due or second == length:
            found[second] = shapley(values_at(world.state, second).tolist())
    return found
