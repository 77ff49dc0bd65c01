"""Holds priorities, and the guarantees that they are to keep, against the live cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from shapleyprio.common.wording import duration, listed
from shapleyprio.config import Config
from shapleyprio.config.membership import Membership
from shapleyprio.fairness.scale import scale
from shapleyprio.fairness.tenure import NOBODY
from shapleyprio.slurm.channels import CHANNELS, Claims
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import SHORTEST_CALC_PERIOD, Layout, Partition, others_by_factor


def check_left_out_partitions(config: Config) -> Iterator[Finding]:
    """Looks for jobs that get points although they do not count."""
    channel = CHANNELS[config.push.channel]
    if config.fairness.leave_out_partitions and not channel.per_job:
        yield Finding(
            Severity.NOTICE,
            "fairness.leave_out_partitions",
            f"their jobs do not count, but still have the points of their {channel.carrier}, "
            f"since push.channel is {channel.name!r}",
            'unless intended, set push.channel = "site_factor", or give them accounts of '
            "their own and add these to fairness.leave_out_accounts",
        )


def check_weights(config: Config, layout: Layout) -> Iterator[Finding]:
    """Compares how far organizations are apart with what other factors can add."""
    if layout.settings.type != "priority/multifactor":
        yield Finding(
            Severity.ERROR,
            "PriorityType",
            f"is {layout.settings.type or 'not set'}: Slurm starts jobs in the order of their "
            "submission, whatever is written",
            "set PriorityType=priority/multifactor in slurm.conf and restart slurmctld",
        )
        return
    channel, influence = CHANNELS[config.push.channel], config.push.influence
    factors = others_by_factor(layout, channel.factor)
    others = sum(factors.values())
    organizations = len(config.organizations)
    step = channel.step_in_points(layout, scale(organizations, others, influence), organizations)
    whole = step * max(organizations - 1, 1)
    by_weight = sorted(factors.items(), key=lambda item: -item[1])
    named = ", ".join(f"{name} {points}" for name, points in by_weight)
    added = f"other factors can add {others} points to a job ({named or 'none'})"
    if blocked := channel.blocked(layout):
        yield blocked
    elif step > others:
        if others:
            yield Finding(
                Severity.NOTICE,
                "priority weights",
                f"{added}, organizations are {step} apart: they order the jobs within an "
                "organization only",
                "set push.influence to fewer points if they should count between organizations",
            )
    elif influence is None:
        yield Finding(
            Severity.ERROR,
            "priority weights",
            f"{added}, organizations are only {step} apart: strict order cannot be kept",
            f"{channel.strict_remedy}, or set push.influence to a number of points",
        )
    else:
        drowned = others >= whole
        yield Finding(
            Severity.WARNING if drowned else Severity.NOTICE,
            "priority weights",
            f"{added}, organizations are {step} apart and {whole} from first to last: they can "
            f"{'drown the whole order' if drowned else 'put neighbors out of order'}",
            'raise push.influence or make it "strict", unless intended',
        )


def check_channel(config: Config, claims: Claims, layout: Layout) -> Iterator[Finding]:
    """Looks at what the channel demands of the cluster."""
    if "INCR_ONLY" in layout.settings.flags:
        yield Finding(
            Severity.ERROR,
            "PriorityFlags",
            "has INCR_ONLY: a priority never falls, so an organization never loses its place",
            "remove INCR_ONLY from PriorityFlags in slurm.conf",
        )
    channel = CHANNELS[config.push.channel]
    yield from channel.demands(layout, claims)
    period = layout.settings.calc_period_seconds
    if channel.follows_late and not config.push.touch and period > SHORTEST_CALC_PERIOD:
        yield Finding(
            Severity.WARNING,
            "push.touch",
            f"is false, and PriorityCalcPeriod is {period} s: pending jobs follow the priority of "
            f"their {channel.carrier} only that often",
            "set push.touch = true, or PriorityCalcPeriod=00:01:00 in slurm.conf",
        )


def check_guarantees(
    guarantees: Mapping[str, int], members: Membership, layout: Layout
) -> Iterator[Finding]:
    """Finds partitions where others may hold an owner's nodes for longer than its guarantee says.

    Args:
        guarantees: organization -> seconds.
        members: who has which accounts and nodes.
        layout: of the cluster, or of what a pool has of it.
    """
    if not guarantees:
        return
    if overlapping := _overlapping(layout.partitions.values()):
        yield Finding(
            Severity.NOTICE,
            "partitions",
            f"{listed(overlapping)} have some nodes in common, not all: an owner's job that goes "
            "first in one may take another owner's nodes, whose own job then waits for longer than "
            "fairness.guarantee says",
            "let partitions have all nodes in common or none (docs/semantics.md, What a guarantee "
            "leaves)",
        )
    for partition in layout.partitions.values():
        owners = {members.nodes.get(node, NOBODY) for node in partition.nodes}
        short: defaultdict[int, list[str]] = defaultdict(list)
        for name, seconds in guarantees.items():
            if name in owners and _others_may_stay(partition, name, seconds, members):
                short[seconds].append(name)
        for seconds, names in sorted(short.items()):
            stay = "without end" if partition.longest is None else duration(partition.longest)
            yield Finding(
                Severity.NOTICE if partition.preempts else Severity.WARNING,
                f"partition {partition.name}",
                f"jobs of others may stay {stay} on nodes of {listed(sorted(names))}, whose "
                f"fairness.guarantee is {duration(seconds)}: priorities alone cannot keep it"
                + (", unless Slurm preempts these jobs" if partition.preempts else ""),
                f"set MaxTime={-(-seconds // 60)} for it in slurm.conf, let the owner preempt, or "
                "reserve nodes (docs/operations.md, Guarantees)",
            )


def _overlapping(partitions: Iterable[Partition]) -> list[str]:
    """Returns the partitions that have nodes in common with others which have other nodes, too."""
    nodes_of = {partition.name: frozenset(partition.nodes) for partition in partitions}
    return [
        name
        for name, nodes in sorted(nodes_of.items())
        if any(nodes != others and nodes & others for others in nodes_of.values())
    ]


def _others_may_stay(partition: Partition, owner: str, seconds: int, members: Membership) -> bool:
    """Returns whether anybody else's jobs may run there for longer."""
    allowed = partition.allow_accounts or tuple(members.accounts)
    others = any(members.accounts.get(account, NOBODY) != owner for account in allowed)
    return others and (partition.longest is None or partition.longest > seconds)
