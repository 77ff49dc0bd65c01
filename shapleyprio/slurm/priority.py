"""The effect of Slurm's own factors on an order that we set."""

from __future__ import annotations

from collections.abc import Collection

from shapleyprio.slurm.layout import Layout

SHORTEST_CALC_PERIOD = 60
"""Seconds of the shortest PriorityCalcPeriod there is."""


def others_by_factor(layout: Layout, own: str | None) -> dict[str, int]:
    """Returns the most that each factor but ours adds to one job's priority over another's.

    A factor lies in [0, 1] and is multiplied by its weight, unless PriorityFlags keeps Slurm
    from normalizing it: then the largest priority in use multiplies the weight.

    Args:
        layout: the cluster.
        own: the factor that carries our points; None for none of them.
    """
    settings = layout.settings
    if settings.type != "priority/multifactor":
        return {}
    largest = {
        "QOS": max(layout.qos_priorities.values(), default=0),
        "Partition": max((p.priority_job_factor for p in layout.partitions.values()), default=0),
    }
    flag = {"QOS": "NO_NORMAL_QOS", "Partition": "NO_NORMAL_PART"}
    raw = {factor: is_raw(settings.flags, name) for factor, name in flag.items()}
    others = {}
    for factor, weight in settings.weights.items():
        if factor == own:
            continue
        points = weight
        if factor in largest:
            points *= largest[factor] if raw[factor] else largest[factor] > 0
        if points > 0:
            others[factor] = points
    return others


def others_can_add(layout: Layout, own: str | None) -> int:
    """Returns the most that all factors but our own add together; see `others_by_factor`."""
    return sum(others_by_factor(layout, own).values())


def is_raw(flags: Collection[str], flag: str) -> bool:
    """Returns whether Slurm leaves a factor as it is; 22.05 shows such flags as NO_NORMAL_ALL."""
    return flag in flags or "NO_NORMAL_ALL" in flags
