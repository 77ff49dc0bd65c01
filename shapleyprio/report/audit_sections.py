"""The sections that only an audit's report has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

from shapleyprio.audit.auditing import Assessed, Audit
from shapleyprio.audit.stability import Coalition
from shapleyprio.report.charts import trends
from shapleyprio.report.comparisons import bars
from shapleyprio.report.page import Cell, Section, Table, columns_of
from shapleyprio.report.replayed import Replayed
from shapleyprio.wording import SECONDS_OF_AN_HOUR, duration, percent

MOST_MOMENTS = 200
"""Largest number of periods that are shown; sums until then, so that none is lost."""


def delays(replayed: Replayed, audit: Audit) -> Section:
    """Shows by how long each organization's own work came too late."""
    return _organizations(
        replayed,
        audit,
        "delays",
        lambda assessed: assessed.delays,
        title="Whose work came too late",
        note="By how many hours a part of an organization's own work came later than in the fair "
        f"schedule of {replayed.reference}, on average; to the left it came earlier.",
    )


def alone(replayed: Replayed, audit: Audit) -> Section:
    """Shows whether each organization would have been better off alone."""
    return _organizations(
        replayed,
        audit,
        "alone",
        lambda assessed: [alone.earlier for alone in assessed.stability.organizations],
        title="Each organization alone",
        note="By how many hours a part of its work would have come earlier, had it had nothing but "
        "its own processors; to the left later: it is better off with the others.",
    )


def exchange(replayed: Replayed, audit: Audit) -> Section:
    """Shows who gave more than it took, as time went by."""
    names, periods = tuple(replayed.colors), audit.periods
    each = [period.used if period.lent is None else period.lent for period in periods]
    lines = [
        (0, *(total / SECONDS_OF_AN_HOUR for total in accumulate(column)))
        for column in zip(*each, strict=True)
    ]
    moments = (0, *(period.end for period in periods))
    last = len(periods)
    shown = sorted({-(-last * i // MOST_MOMENTS) for i in range(MOST_MOMENTS + 1)})
    given = "on its processors, whoever's jobs they were, less those of its jobs"
    known = audit.carried is not None
    return Section(
        title="Contributed less used" if known else "Used",
        note=f"Processor-hours {given}, since the window's start: above zero it gave more than it "
        "took."
        if known
        else "Processor-hours of its jobs since the window's start; the log does not say on whose "
        "processors they ran.",
        chart=trends(
            "exchange",
            columns_of(
                ("organization", "time", "value"),
                (
                    (name, replayed.shown(moments[i]), line[i])
                    for name, line in zip(names, lines, strict=True)
                    for i in shown
                ),
            ),
            axis=replayed.axis,
            title="processor-hours",
            colors=replayed.colors,
            choice=None,
        ),
        table=Table(
            headings=("second", *names),
            rows=[(moments[i], *(line[i] for line in lines)) for i in shown],
        ),
    )


def stability(audit: Audit) -> Section:
    """Shows who would have had more alone."""
    fair = audit.reference.result.schedule.policy
    sampled = "" if audit.orderings is None else "sampled "
    return Section(
        title="Who would have left",
        note="Coalitions that would have had more alone, with their own processors, and the one "
        "with the strongest reason. Gain: v(C) − Σψ of the members, in processor-hours that come "
        "one hour earlier, relative to their Σψ, and in hours for each part of their work; if "
        f"fair: what they would have gained under {fair} without leaving.",
        chart=None,
        table=Table(
            headings=(
                "schedule",
                f"gaining of {audit.recorded.stability.coalitions:,} {sampled}coalitions",
                *("strongest reason to leave", "gain, ph·h", "relative"),
                *("earlier, h", "if fair, h"),
            ),
            rows=[row for assessed in audit.schedules for row in _reasons(audit, assessed)],
        ),
    )


def _reasons(audit: Audit, assessed: Assessed) -> Iterator[Sequence[Cell]]:
    found, policy = assessed.stability, assessed.result.schedule.policy
    if found.strongest is None or found.strongest_relative is None:
        yield (policy, 0, "nobody", None, None, None, None)
        return
    names = audit.workload.organizations
    strongest = found.strongest.named(names)
    yield (policy, found.gaining, strongest, *_gain(found.strongest))
    if found.strongest_relative != found.strongest:
        relatively = f"{found.strongest_relative.named(names)} (relatively)"
        yield (policy, found.gaining, relatively, *_gain(found.strongest_relative))


def _gain(coalition: Coalition) -> tuple[Cell, ...]:
    relative = coalition.relative_gain
    return (
        coalition.gain / SECONDS_OF_AN_HOUR**2,
        "∞" if relative is None else percent(relative, digits=2),
        _hours(coalition.earlier),
        _hours(coalition.earlier_if_fair),
    )


def _organizations(
    replayed: Replayed,
    audit: Audit,
    name: str,
    seconds: Callable[[Assessed], Sequence[Fraction | None]],
    *,
    title: str,
    note: str,
) -> Section:
    """Shows one number of each organization under each schedule."""
    found = {assessed.result.schedule.policy: seconds(assessed) for assessed in audit.schedules}
    return Section(
        title=title,
        note=note,
        chart=bars(
            name,
            columns_of(
                ("choice", "organization", "value", "label"),
                (
                    (
                        policy,
                        organization,
                        float(value) / SECONDS_OF_AN_HOUR,
                        duration(float(value)),
                    )
                    for policy, values in found.items()
                    for organization, value in zip(replayed.colors, values, strict=True)
                    if value is not None
                ),
            ),
            title="hours",
            colors=replayed.colors,
            choice=replayed.initial,
        ),
        table=Table(
            headings=("organization", *(f"{policy}, h" for policy in found)),
            rows=[
                (organization, *(_hours(values[u]) for values in found.values()))
                for u, organization in enumerate(replayed.colors)
            ],
        ),
    )


def _hours(seconds: Fraction | None) -> float | None:
    return None if seconds is None else float(seconds) / SECONDS_OF_AN_HOUR
