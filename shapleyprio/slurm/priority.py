"""What Slurm's own factors can do to an order that we set."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from shapleyprio.fairness.ranking import Scale
from shapleyprio.slurm.port import Channel, Layout


def others_by_factor(layout: Layout, channel: Channel) -> dict[str, int]:
    """The most that each factor but our own can add to one job's priority over another's.

    A factor lies in [0, 1] and is multiplied by its weight, unless PriorityFlags keeps Slurm
    from normalizing it: then the largest priority in use multiplies the weight.
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
        if channel is Channel.QOS and factor == "QOS":
            continue
        points = weight
        if factor in largest:
            points *= largest[factor] if raw[factor] else largest[factor] > 0
        if points > 0:
            others[factor] = points
    return others


def others_can_add(layout: Layout, channel: Channel) -> int:
    """The most that all factors but our own can add together."""
    return sum(others_by_factor(layout, channel).values())


def step_in_points(layout: Layout, channel: Channel, scale: Scale, organizations: int) -> int:
    """How many points of a job's priority one step of the scale is worth.

    Site factor and nice count as they are; a QOS's priority is divided by the largest of all QOS
    and multiplied by PriorityWeightQOS.
    """
    if channel is not Channel.QOS:
        return scale.step
    weight = layout.settings.weights.get("QOS", 0)
    if is_raw(layout.settings.flags, "NO_NORMAL_QOS"):
        return weight * scale.step
    top = max(scale.priority(organizations - 1), _largest(layout.qos_priorities))
    return weight * scale.step // top


def is_raw(flags: Collection[str], flag: str) -> bool:
    """Whether Slurm leaves a factor as it is; 22.05 tells every such flag as NO_NORMAL_ALL."""
    return flag in flags or "NO_NORMAL_ALL" in flags


def _largest(priorities: Mapping[str, int]) -> int:
    return max(priorities.values(), default=0)
