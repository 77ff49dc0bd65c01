"""Holds how priorities are written against how the live cluster computes them."""

from __future__ import annotations

from collections.abc import Iterator

from shapleyprio.config import Config
from shapleyprio.fairness.scale import scale
from shapleyprio.slurm.channels import CHANNELS, Claims
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import Layout
from shapleyprio.slurm.priority import SHORTEST_CALC_PERIOD, others_by_factor


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
