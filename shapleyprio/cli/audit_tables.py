"""An audit for people: a verdict, and the tables behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction

from rich.console import Console
from rich.table import Table

from shapleyprio.audit.auditing import Audit
from shapleyprio.audit.results import OWNERS_UNKNOWN
from shapleyprio.audit.stability import Coalition
from shapleyprio.cli.replaying import announce, plain_table, short
from shapleyprio.replay.log import Log
from shapleyprio.replay.results import jobs_of

HOUR = 3600
EVERYBODY = "together"


def render(console: Console, log: Log, audit: Audit) -> None:
    """Prints everything."""
    sections = list(_sections(log, audit))
    announce(console, log, audit.workload, [table for _, table, _ in sections])
    for line in _verdict(audit):
        console.print()
        console.print(line, markup=False, soft_wrap=True)
    for title, table, legend in sections:
        console.print()
        console.print(title, markup=False, style="bold", soft_wrap=True)
        console.print(table)
        if legend:
            console.print(legend, markup=False, style="dim", soft_wrap=True)
    for line in _missing(audit):
        console.print()
        console.print(line, markup=False, soft_wrap=True)


def _sections(log: Log, audit: Audit) -> Iterator[tuple[str, Table, str]]:
    """Title, table and legend of each."""
    fair = audit.reference.result.schedule.policy
    estimated = "" if audit.orderings is None else f", estimated from {audit.orderings} orderings"
    yield (
        f"Too early or too late, against {fair}{estimated}",
        _drifts(audit),
        "drift: (ψ − ψ*) / p_tot, together Δψ/p_tot; delay: by how many hours a part of the "
        "organization's own work came too late, − too early",
    )
    if audit.carried is None:
        yield "Used, processor-hours", _over_time(log, audit), ""
    else:
        yield (
            "Who carried whom: processor-hours of a row's jobs on a column's nodes",
            _carried(audit, audit.carried),
            "",
        )
        yield (
            "Contributed less used, processor-hours",
            _over_time(log, audit),
            "+: its nodes worked more than its jobs did",
        )
    yield (
        "Stability: who would have had more alone, with their own nodes",
        _stability(audit),
        "gain: v(C) − Σψ of the members, in processor-hours that come one hour earlier (ph·h), "
        "relative to their Σψ, and for each part of their work; if fair: what they would have "
        f"gained under {fair} without leaving",
    )
    yield (
        "Each organization alone: hours by which a part of its work would have come earlier",
        _alone(audit),
        "− later: it is better off in the consortium",
    )


def _drifts(audit: Audit) -> Table:
    compared = [one for one in audit.schedules if one is not audit.reference]
    names = [one.result.schedule.policy for one in compared]
    columns = ("processors", "jobs", *(f"{name} drift" for name in names))
    table = _numbers("organization", *columns, *(f"{name} delay" for name in names))
    jobs, workload = jobs_of(audit.workload), audit.workload
    for u, name in enumerate(workload.organizations):
        drifts = (one.result.drifts[u] for one in compared if one.result.drifts is not None)
        table.add_row(
            name,
            f"{int(workload.owned[u]):,}",
            f"{jobs[u]:,}",
            *(f"{short(drift, sign='+')} s" for drift in drifts),
            *(_hours(one.delays[u]) for one in compared),
        )
    table.add_row(
        EVERYBODY,
        f"{workload.system_processors:,}",
        f"{sum(jobs):,}",
        *(f"{short(one.result.unfairness or 0)} s" for one in compared),
        *(_hours(-sum(one.result.drifts or (), Fraction(0))) for one in compared),
    )
    return table


def _carried(audit: Audit, matrix: Sequence[Sequence[int]]) -> Table:
    names = audit.workload.organizations
    nobody = any(row[-1] for row in matrix)
    rows = [row if nobody else row[:-1] for row in matrix]
    table = _numbers("jobs of", *names, *(["nobody"] if nobody else []), EVERYBODY)
    for name, row in zip(names, rows, strict=True):
        table.add_row(name, *map(_processor_hours, row), _processor_hours(sum(row)))
    sums = [sum(column) for column in zip(*rows, strict=True)]
    table.add_row(EVERYBODY, *map(_processor_hours, sums), _processor_hours(sum(sums)))
    return table


def _over_time(log: Log, audit: Audit) -> Table:
    table = _numbers("from", *audit.workload.organizations)
    totals = [0] * len(audit.workload.organizations)
    for period in audit.periods:
        row: Sequence[int] = period.used
        if period.contributed is not None:
            pairs = zip(period.contributed, period.used, strict=True)
            row = [contributed - used for contributed, used in pairs]
        table.add_row(_moment(log, audit, period.start), *_signed(audit, row))
        totals = [total + one for total, one in zip(totals, row, strict=True)]
    table.add_row("in all", *_signed(audit, totals))
    return table


def _stability(audit: Audit) -> Table:
    sampled = "" if audit.orderings is None else "sampled "
    total, names = audit.schedules[0].stability.coalitions, audit.workload.organizations
    table = _numbers("schedule", f"gaining of {total:,} {sampled}coalitions", *_GAIN)
    table.add_column("strongest reason to leave")
    for assessed in audit.schedules:
        found = assessed.stability
        first = (assessed.result.schedule.policy, f"{found.gaining:,}")
        if found.strongest is None or found.strongest_relative is None:
            table.add_row(*first, *("" for _ in _GAIN), "nobody")
            continue
        table.add_row(*first, *_gain(found.strongest), found.strongest.named(names))
        if found.strongest_relative != found.strongest:
            relative = found.strongest_relative
            table.add_row("", "", *_gain(relative), f"{relative.named(names)} (relatively)")
    return table


def _alone(audit: Audit) -> Table:
    table = _numbers("organization", *(one.result.schedule.policy for one in audit.schedules))
    for u, name in enumerate(audit.workload.organizations):
        gains = (one.stability.organizations[u].earlier for one in audit.schedules)
        table.add_row(name, *map(_hours, gains))
    return table


def _verdict(audit: Audit) -> Iterator[str]:
    """Two sentences and what they rest on."""
    recorded, names = audit.recorded, audit.workload.organizations
    known = [(delay, u) for u, delay in enumerate(recorded.delays) if delay is not None]
    delay, u = max(known, key=lambda one: (one[0], -one[1]))
    hours = short(delay / HOUR)
    worst = (
        f"; latest for {names[u]}, whose work came {hours} h later than was fair."
        if delay > 0 and hours != short(0)
        else "; nobody's work came later than was fair."
    )
    yield (
        f"A part of work came {short((recorded.result.unfairness or Fraction(0)) / HOUR)} h too "
        f"early or too late on average{worst}"
    )
    found, fair = recorded.stability, audit.reference
    if found.strongest is None:
        yield "Stable: no organization or group of them would have had more alone."
        return
    policy = fair.result.schedule.policy
    yield (
        f"Not stable: {found.gaining:,} of {found.coalitions:,} coalitions would have had more "
        f"alone (under {policy} {fair.stability.gaining:,}). The strongest reason to leave: "
        f"{found.strongest.named(names)}{_prospects(found.strongest, policy)}."
    )


def _prospects(coalition: Coalition, policy: str) -> str:
    """What leaving would have brought a coalition, and what fairness would have."""
    alone, fair = coalition.earlier, coalition.earlier_if_fair
    if alone is None or fair is None:
        return ""
    when = "earlier" if fair >= 0 else "later"
    return (
        f"; alone their work would have come {short(alone / HOUR)} h earlier, under {policy} "
        f"{short(abs(fair) / HOUR)} h {when} without leaving"
    )


def _missing(audit: Audit) -> Iterator[str]:
    if audit.carried is None:
        yield f"{OWNERS_UNKNOWN}: contributions and who carried whom are left out"
    if audit.orderings is not None:
        yield (
            f"coalitions were sampled from {audit.orderings} random orderings and start jobs by "
            "release; others may have more reason to leave"
        )
    left_out = dict(audit.workload.left_out)
    reasons = [f"{count:,} {why.replace('_', ' ')}" for why, count in left_out.items()]
    if reasons:
        yield f"left out: {', '.join(reasons)}"
    if audit.unknown_starts:
        yield f"{audit.unknown_starts:,} jobs without a recorded start count as not started"


_GAIN = ("gain", "relative", "earlier", "if fair")


def _gain(coalition: Coalition) -> tuple[str, str, str, str]:
    relative = coalition.relative_gain
    return (
        f"{short(Fraction(coalition.gain, HOUR**2), sign='+')} ph·h",
        "∞" if relative is None else f"{float(relative):+.2%}".replace("-", "−"),
        _hours(coalition.earlier),
        _hours(coalition.earlier_if_fair),
    )


def _numbers(first: str, *headings: str) -> Table:
    table = plain_table(first)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _hours(seconds: Fraction | None) -> str:
    return "" if seconds is None else f"{short(seconds / HOUR, sign='+')} h"


def _processor_hours(processor_seconds: int) -> str:
    return short(Fraction(processor_seconds, HOUR)) if processor_seconds else "0"


def _signed(audit: Audit, processor_seconds: Sequence[int]) -> Iterator[str]:
    sign = "" if audit.carried is None else "+"
    return (short(Fraction(one, HOUR), sign=sign) if one else "0" for one in processor_seconds)


def _moment(log: Log, audit: Audit, second: int) -> str:
    """A time of the window: the date in UTC, in SWF seconds since the log's first release."""
    window = audit.workload.window
    if log.format == "swf":
        return f"{window.start - int(log.release.min()) + second:,} s"
    return datetime.fromtimestamp(window.start + second, UTC).strftime("%Y-%m-%d %H:%M")
