"""The sections that only an audit's report has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

from shapleyprio.common.wording import HOUR, decimal, delay, percent, sooner, whole
from shapleyprio.replay.audit.auditing import Assessed, Audit
from shapleyprio.replay.audit.findings import all_of
from shapleyprio.replay.audit.findings import stability as in_words
from shapleyprio.replay.audit.guarantees import Guarantees
from shapleyprio.replay.audit.stability import Coalition
from shapleyprio.replay.policies.registry import title_of
from shapleyprio.reports.html.charts import trends
from shapleyprio.reports.html.comparisons import bars
from shapleyprio.reports.html.page import Cell, Section, Table, columns_of
from shapleyprio.reports.replayed import Replayed

MOST_MOMENTS = 200
"""Largest number of periods that are shown; sums until then, so that none is lost."""


def outcome(replayed: Replayed, audit: Audit) -> Section:
    """Shows by how much each organization was really late or ahead, and in words each union."""
    unions = audit.of_unions(audit.recorded.delays).items()
    return _organizations(
        replayed,
        [audit.recorded],
        "outcome",
        lambda assessed: assessed.delays,
        title="Who was late, and by how much",
        note="Hours by which an organization's work came too late, compared with the fair schedule "
        "and spread over everybody's work; to the left of zero it was ahead. The bars add up to "
        "the hours by which work came too early or too late on average."
        + "".join(f" All of {parent}: {delay(late)}." for parent, late in unions),
        choice=None,
    )


def alone(replayed: Replayed, audit: Audit) -> Section:
    """Shows whether each organization would have been better off alone."""
    return _organizations(
        replayed,
        audit.schedules,
        "alone",
        lambda assessed: [alone.earlier for alone in assessed.stability.organizations],
        title="Each organization alone",
        note="Hours by which its work would have come earlier, had it had nothing but its own "
        "processors; to the left of zero later: it is better off with the others. What happened "
        "had to cope with outages, partitions and wide jobs; being alone here does not.",
        choice=replayed.initial,
        label=sooner,
    )


def before(audit: Audit, earlier: Audit, period: str) -> Section:
    """Shows the figures of the period before beside those of an audit.

    Args:
        audit: of the period.
        earlier: of the period before; some organizations may be in one of both alone.
        period: when that was, in words.
    """
    both = (earlier, audit)
    delays = [
        dict(zip(one.workload.organizations, one.recorded.delays, strict=True)) for one in both
    ]
    names = delays[1] | delays[0]
    late = [(name, *(delay(one.get(name)) for one in delays)) for name in names]
    unions = [one.of_unions(one.recorded.delays) for one in both]
    late += [(all_of(parent), *(delay(one[parent]) for one in unions)) for parent in unions[0]]
    return Section(
        title="Against the period before",
        note=f"The period before: jobs released {period}.",
        chart=None,
        table=Table(
            headings=("", "before", "now"),
            rows=[
                ("too early or too late", *(one.recorded.result.gap for one in both)),
                *late,
                ("jobs", *(whole(len(one.workload.job)) for one in both)),
                ("processor-hours used", *(whole(_used(one)) for one in both)),
            ],
        ),
    )


def _used(audit: Audit) -> int:
    return round(sum(sum(one.used) for one in audit.periods) / HOUR)


def exchange(replayed: Replayed, audit: Audit) -> Section:
    """Shows who gave more than it took, as time went by."""
    names, periods = tuple(replayed.colors), audit.periods
    each = [period.used if period.lent is None else period.lent for period in periods]
    lines = [
        (0, *(total / HOUR for total in accumulate(column))) for column in zip(*each, strict=True)
    ]
    moments = (0, *(period.end for period in periods))
    last = len(periods)
    shown = sorted({-(-last * i // MOST_MOMENTS) for i in range(MOST_MOMENTS + 1)})
    given = "on its processors, for anybody's jobs, minus those of its jobs"
    known = audit.carried is not None
    return Section(
        title="Contributed minus used" if known else "Used",
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


def waits_by_partition(rows: Sequence[Sequence[Cell]]) -> Section:
    """Shows how long jobs waited that started, as `audit_page` has it."""
    return Section(
        title="Waits by organization and partition",
        note="What happened: from when a job could have started to when it did.",
        chart=None,
        table=Table(
            headings=("organization", "partition", "jobs", "median, s", "90 %, s", "longest, s"),
            rows=list(rows),
        ),
    )


def guarantees(audit: Audit) -> Section:
    """Shows how often each organization's guarantee was asked for, kept and broken."""
    return Section(
        title="Guarantees",
        note="Jobs that had waited for as long as the guarantee says and fit into what their "
        "organization lent in their partition; which of them started within as long again; and "
        "their waits, in what happened and with their organization's nodes alone.",
        chart=None,
        table=Table(
            headings=(
                *("organization", "schedule", "asked", "kept", "broken"),
                *("late, s", "waited, s", "alone, s"),
            ),
            rows=[
                (name, title_of(policy), one.asked, one.kept, one.broken, *_seconds(one))
                for policy, found in audit.guarantees.items()
                for name, one in zip(audit.workload.organizations, found, strict=True)
            ],
        ),
    )


def _seconds(found: Guarantees) -> Iterator[Cell]:
    for wait in (found.late, found.waited, found.alone):
        yield None if wait is None else float(wait)


def stability(audit: Audit) -> Section:
    """Shows who would have had more alone."""
    sampled = "" if audit.orderings is None else "sampled "
    return Section(
        title="Would anybody have had more alone?",
        note=f"{in_words(audit)} Below: how many groups would have had more alone under each "
        "schedule, the one with the strongest reason, by what part of what they had, and how "
        "much earlier their work would have come, alone and if they had stayed and all had been "
        "fair.",
        chart=None,
        table=Table(
            headings=(
                *("schedule", f"of {audit.recorded.stability.coalitions:,} {sampled}groups"),
                *("strongest reason", "more", "earlier, h", "if fair, h"),
            ),
            rows=[row for assessed in audit.schedules for row in _reasons(audit, assessed)],
        ),
    )


def _reasons(audit: Audit, assessed: Assessed) -> Iterator[Sequence[Cell]]:
    found, title = assessed.stability, title_of(assessed.result.schedule.policy)
    if found.strongest is None:
        yield (title, 0, "nobody", None, None, None)
    for named, coalition in found.reasons(audit.workload.organizations):
        yield (title, found.gaining, named, *_gain(coalition))


def _gain(coalition: Coalition) -> tuple[Cell, ...]:
    relative = coalition.relative_gain
    return (
        "∞" if relative is None else percent(relative, digits=2),
        _decimal_hours(coalition.earlier),
        _decimal_hours(coalition.earlier_if_fair),
    )


def _decimal_hours(seconds: Fraction | None) -> str | None:
    return None if seconds is None else decimal(seconds / HOUR)


def _organizations(
    replayed: Replayed,
    schedules: Sequence[Assessed],
    name: str,
    seconds: Callable[[Assessed], Sequence[Fraction | None]],
    *,
    title: str,
    note: str,
    choice: str | None,
    label: Callable[[Fraction], str] = delay,
) -> Section:
    """Shows one number of each organization under each of the schedules.

    Args:
        replayed: with the organizations.
        schedules: to choose from.
        name: of the chart.
        seconds: of each organization in a schedule.
        title: of the section.
        note: on the chart.
        choice: that is shown at first; None where nothing can be chosen.
        label: the number in words.
    """
    found = {assessed.result.schedule.policy: seconds(assessed) for assessed in schedules}
    return Section(
        title=title,
        note=note,
        chart=bars(
            name,
            columns_of(
                ("choice", "organization", "value", "label"),
                (
                    (policy, organization, float(value) / HOUR, label(value))
                    for policy, values in found.items()
                    for organization, value in zip(replayed.colors, values, strict=True)
                    if value is not None
                ),
            ),
            title="hours",
            colors=replayed.colors,
            choice=choice,
        ),
        table=Table(
            headings=("organization", *(f"{title_of(policy)}, h" for policy in found)),
            rows=[
                (organization, *(_hours(values[u]) for values in found.values()))
                for u, organization in enumerate(replayed.colors)
            ],
        ),
    )


def _hours(seconds: Fraction | None) -> float | None:
    return None if seconds is None else float(seconds) / HOUR
