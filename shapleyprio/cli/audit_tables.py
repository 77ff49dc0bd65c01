"""An audit for people: a verdict, and the tables behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from rich.console import Console
from rich.table import Table

from shapleyprio.audit.auditing import Audit
from shapleyprio.audit.results import OWNERS_UNKNOWN
from shapleyprio.audit.stability import Coalition
from shapleyprio.cli.tables import plain_table
from shapleyprio.cli.workload_tables import announce
from shapleyprio.replay.log import Log
from shapleyprio.replay.results import jobs_of
from shapleyprio.wording import SECONDS_OF_AN_HOUR, decimal, percent, utc_minute, whole

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
    """Yields title, table and legend of each section."""
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
    compared = [assessed for assessed in audit.schedules if assessed is not audit.reference]
    names = [assessed.result.schedule.policy for assessed in compared]
    columns = ("processors", "jobs", *(f"{name} drift" for name in names))
    table = plain_table("organization", *columns, *(f"{name} delay" for name in names))
    jobs, workload = jobs_of(audit.workload), audit.workload
    for u, name in enumerate(workload.organizations):
        drifts = (
            assessed.result.drifts[u] for assessed in compared if assessed.result.drifts is not None
        )
        table.add_row(
            name,
            whole(int(workload.owned[u])),
            whole(jobs[u]),
            *(f"{decimal(drift, sign='+')} s" for drift in drifts),
            *(_hours(assessed.delays[u]) for assessed in compared),
        )
    table.add_row(
        EVERYBODY,
        whole(workload.system_processors),
        whole(sum(jobs)),
        *(f"{decimal(assessed.result.unfairness or 0)} s" for assessed in compared),
        *(_hours(-sum(assessed.result.drifts or (), Fraction(0))) for assessed in compared),
    )
    return table


def _carried(audit: Audit, matrix: Sequence[Sequence[int]]) -> Table:
    names = audit.workload.organizations
    nobody = any(row[-1] for row in matrix)
    rows = [row if nobody else row[:-1] for row in matrix]
    table = plain_table("jobs of", *names, *(["nobody"] if nobody else []), EVERYBODY)
    for name, row in zip(names, rows, strict=True):
        table.add_row(name, *map(_processor_hours, row), _processor_hours(sum(row)))
    sums = [sum(column) for column in zip(*rows, strict=True)]
    table.add_row(EVERYBODY, *map(_processor_hours, sums), _processor_hours(sum(sums)))
    return table


def _over_time(log: Log, audit: Audit) -> Table:
    table = plain_table("from", *audit.workload.organizations)
    totals = [0] * len(audit.workload.organizations)
    for period in audit.periods:
        row = period.used if period.lent is None else period.lent
        table.add_row(_moment(log, audit, period.start), *_signed(audit, row))
        totals = [total + added for total, added in zip(totals, row, strict=True)]
    table.add_row("in all", *_signed(audit, totals))
    return table


def _stability(audit: Audit) -> Table:
    sampled = "" if audit.orderings is None else "sampled "
    total, names = audit.schedules[0].stability.coalitions, audit.workload.organizations
    table = plain_table("schedule", f"gaining of {total:,} {sampled}coalitions", *_GAIN)
    table.add_column("strongest reason to leave")
    for assessed in audit.schedules:
        found = assessed.stability
        first = (assessed.result.schedule.policy, whole(found.gaining))
        if found.strongest is None or found.strongest_relative is None:
            table.add_row(*first, *("" for _ in _GAIN), "nobody")
            continue
        table.add_row(*first, *_gain(found.strongest), found.strongest.named(names))
        if found.strongest_relative != found.strongest:
            relative = found.strongest_relative
            table.add_row("", "", *_gain(relative), f"{relative.named(names)} (relatively)")
    return table


def _alone(audit: Audit) -> Table:
    table = plain_table(
        "organization", *(assessed.result.schedule.policy for assessed in audit.schedules)
    )
    for u, name in enumerate(audit.workload.organizations):
        gains = (assessed.stability.organizations[u].earlier for assessed in audit.schedules)
        table.add_row(name, *map(_hours, gains))
    return table


def _verdict(audit: Audit) -> Iterator[str]:
    """Yields two sentences and what they rest on."""
    recorded, names = audit.recorded, audit.workload.organizations
    u, delay = audit.latest
    hours = decimal(delay / SECONDS_OF_AN_HOUR)
    worst = (
        f"; latest for {names[u]}, whose work came {hours} h later than was fair."
        if delay > 0 and hours != decimal(0)
        else "; nobody's work came later than was fair."
    )
    unfairness = recorded.result.unfairness or Fraction(0)
    yield (
        f"A part of work came {decimal(unfairness / SECONDS_OF_AN_HOUR)} h too "
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
    """Says what leaving would have brought a coalition, and what fairness would have."""
    alone, fair = coalition.earlier, coalition.earlier_if_fair
    if alone is None or fair is None:
        return ""
    when = "earlier" if fair >= 0 else "later"
    return (
        f"; alone their work would have come {decimal(alone / SECONDS_OF_AN_HOUR)} h earlier, "
        f"under {policy} {decimal(abs(fair) / SECONDS_OF_AN_HOUR)} h {when} without leaving"
    )


def _missing(audit: Audit) -> Iterator[str]:
    if audit.carried is None:
        yield f"{OWNERS_UNKNOWN}: contributions and who carried whom are left out"
    if audit.orderings is not None:
        yield (
            f"coalitions were sampled from {audit.orderings} random orderings and start jobs by "
            "release; others may have more reason to leave"
        )
    if reasons := audit.workload.left_out_in_words:
        yield f"left out: {reasons}"
    if audit.unknown_starts:
        yield f"{audit.unknown_starts:,} jobs without a recorded start count as not started"


_GAIN = ("gain", "relative", "earlier", "if fair")


def _gain(coalition: Coalition) -> tuple[str, str, str, str]:
    relative = coalition.relative_gain
    return (
        f"{decimal(Fraction(coalition.gain, SECONDS_OF_AN_HOUR**2), sign='+')} ph·h",
        "∞" if relative is None else percent(relative, digits=2, sign="+"),
        _hours(coalition.earlier),
        _hours(coalition.earlier_if_fair),
    )


def _hours(seconds: Fraction | None) -> str:
    return "" if seconds is None else f"{decimal(seconds / SECONDS_OF_AN_HOUR, sign='+')} h"


def _processor_hours(processor_seconds: int) -> str:
    return decimal(Fraction(processor_seconds, SECONDS_OF_AN_HOUR)) if processor_seconds else "0"


def _signed(audit: Audit, processor_seconds: Sequence[int]) -> Iterator[str]:
    sign = "" if audit.carried is None else "+"
    return (
        decimal(Fraction(seconds, SECONDS_OF_AN_HOUR), sign=sign) if seconds else "0"
        for seconds in processor_seconds
    )


def _moment(log: Log, audit: Audit, second: int) -> str:
    """Formats a time of the window: as date in UTC, in SWF as seconds since the first release."""
    window = audit.workload.window
    if log.format == "swf":
        return f"{window.start - int(log.release.min()) + second:,} s"
    return utc_minute(window.start + second)
