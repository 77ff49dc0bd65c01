"""The work of `shapleyprio audit`: read the log, audit it, and show a verdict and its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from rich.console import Console

from shapleyprio.cli.offline.in_force import read_in_force
from shapleyprio.cli.offline.workloads import (
    OUT_OF_TURN,
    RHO,
    RHO_LEGEND,
    TURNS_LEGEND,
    announce,
    largest_rho,
    out_of_turn,
    where_jobs_ran,
    workload_for,
)
from shapleyprio.cli.options.json_output import write_json
from shapleyprio.cli.options.parameters import AuditParameters, WorkloadParameters
from shapleyprio.cli.options.reporting import publish
from shapleyprio.cli.shown.progress import progress_bars
from shapleyprio.cli.shown.standings import MOST_USERS, after_end_table
from shapleyprio.cli.shown.tables import FittingTable, standard_output, table_of
from shapleyprio.common.wording import (
    HOUR,
    decimal,
    delay,
    duration,
    local_minute,
    percent,
    sooner,
    whole,
)
from shapleyprio.replay.audit.auditing import Audit, audit
from shapleyprio.replay.audit.findings import all_of, caveats, stability, verdict
from shapleyprio.replay.audit.in_force import InForce
from shapleyprio.replay.audit.results import audit_as_json
from shapleyprio.replay.audit.stability import Coalition
from shapleyprio.replay.logs.exports.reading import store_url
from shapleyprio.replay.logs.stored import users_after_end
from shapleyprio.replay.measures.turns import TOO_MANY
from shapleyprio.replay.results import jobs_of
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.nodes import kept_to_clusters
from shapleyprio.replay.workloads.workload import Window
from shapleyprio.store import Store, UserAfterEnd

if TYPE_CHECKING:
    from shapleyprio.reports import Page


EVERYBODY = "together"


def render(
    console: Console,
    log: Log,
    audit: Audit,
    after_end: Sequence[UserAfterEnd],
    in_force: InForce,
) -> None:
    """Prints everything.

    Args:
        console: where to.
        log: that was read.
        audit: what was found.
        after_end: users of jobs that continued after their end, most first.
        in_force: who ordered the queue, and what changed hands.
    """
    announce(console, log, audit.workload)
    for line in in_force.sentences():
        console.print(line, soft_wrap=True)
    for line in (verdict(audit), stability(audit)):
        console.print()
        console.print(line, soft_wrap=True)
    sections = [*_sections(log, audit), *_after_end(after_end)]
    for title, table, legend in sections:
        console.print()
        console.print(title, style="bold", soft_wrap=True)
        console.print(table)
        if legend:
            console.print(legend, style="dim", soft_wrap=True)
    console.print()
    if log.clusters:
        console.print(where_jobs_ran(log, audit.workload), soft_wrap=True)
    for line in caveats(audit, continued=log.window is not None):
        console.print(line, soft_wrap=True)


def _sections(log: Log, audit: Audit) -> Iterator[tuple[str, FittingTable, str]]:
    """Yields title, table and legend of each section."""
    fair = audit.reference.result.schedule.policy
    estimated = "" if audit.orderings is None else f", estimated from {audit.orderings} orderings"
    yield (
        f"Late or ahead, against {fair}{estimated}",
        _drifts(audit),
        "late or ahead: all that came too late or too early for an organization, spread over "
        f"everybody's work; together: sum without signs; {RHO_LEGEND}; {_judged(audit)}",
    )
    if audit.guarantees:
        yield (
            "Guarantees: jobs that had waited for so long and fit into what their owner lent",
            _guarantees(audit),
            "kept: started within as long again; late: by how much the broken ones missed that; "
            "waited: all that asked; alone: their waits on their owner's nodes alone",
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
            "Contributed minus used, processor-hours",
            _over_time(log, audit),
            "+: its nodes worked more than its jobs did",
        )
    yield (
        "Stability: who would have had more alone, with their own nodes",
        _stability(audit),
        "relative: how much more they would have had alone, of what they had; alone: by how much "
        f"their work would have come sooner; if fair: the same under {fair}, without leaving",
    )
    yield (
        "Each organization alone: when its work would have come, against each schedule",
        _alone(audit),
        "later: it is better off in the consortium",
    )


def _after_end(users: Sequence[UserAfterEnd]) -> Iterator[tuple[str, FittingTable, str]]:
    if users:
        yield (
            "Users of jobs that continued after their end",
            after_end_table(users),
            "until Slurm's KillWait was over; this does not count",
        )


def _drifts(audit: Audit) -> FittingTable:
    compared = [assessed for assessed in audit.schedules if assessed is not audit.reference]
    names = [assessed.result.schedule.policy for assessed in compared]
    jobs, workload = jobs_of(audit.workload), audit.workload
    rows = [
        (
            name,
            whole(int(workload.owned[u])),
            whole(jobs[u]),
            *(delay(assessed.delays[u]) for assessed in compared),
        )
        for u, name in enumerate(workload.organizations)
    ]
    unions = [audit.of_unions(assessed.delays) for assessed in compared]
    rows += [
        (all_of(parent), "", "", *(delay(late[parent]) for late in unions)) for parent in unions[0]
    ]
    rows.append(
        (
            EVERYBODY,
            whole(workload.system_processors),
            whole(sum(jobs)),
            *(assessed.result.gap for assessed in compared),
        )
    )
    rows.append((RHO, "", "", *(largest_rho(assessed.result) for assessed in compared)))
    if any(assessed.result.turns is not None for assessed in compared):
        judged = (out_of_turn(assessed.result.turns) for assessed in compared)
        rows.append((OUT_OF_TURN, "", "", *judged))
    return table_of(("organization", "processors", "jobs", *names), rows)


def _guarantees(audit: Audit) -> FittingTable:
    rows = [
        (
            name,
            policy,
            *(whole(number) for number in (one.asked, one.kept, one.broken)),
            *(
                "" if wait is None else duration(float(wait))
                for wait in (one.late, one.waited, one.alone)
            ),
        )
        for policy, found in audit.guarantees.items()
        for name, one in zip(audit.workload.organizations, found, strict=True)
    ]
    headings = ("asked", "kept", "broken", "late", "waited", "alone")
    return table_of(("organization", "schedule", *headings), rows, texts=("schedule",))


def _judged(audit: Audit) -> str:
    if audit.orderings is not None:
        return f"{OUT_OF_TURN} is missing: it needs all coalitions"
    missing = audit.recorded.result.turns is None
    return f"{OUT_OF_TURN} is missing: {TOO_MANY}" if missing else TURNS_LEGEND


def _carried(audit: Audit, matrix: Sequence[Sequence[int]]) -> FittingTable:
    names = audit.workload.organizations
    nobody = any(row[-1] for row in matrix)
    rows = [row if nobody else row[:-1] for row in matrix]
    sums = [sum(column) for column in zip(*rows, strict=True)]
    lines = [
        (name, *map(_processor_hours, row), _processor_hours(sum(row)))
        for name, row in zip((*names, EVERYBODY), (*rows, sums), strict=True)
    ]
    headings = ("jobs of", *names, *(["nobody"] if nobody else []), EVERYBODY)
    return table_of(headings, lines, kept=(EVERYBODY,))


def _over_time(log: Log, audit: Audit) -> FittingTable:
    rows: list[tuple[str, ...]] = []
    totals = [0] * len(audit.workload.organizations)
    for period in audit.periods:
        row = period.used if period.lent is None else period.lent
        rows.append((_moment(log, audit, period.start), *_signed(audit, row)))
        totals = [total + added for total, added in zip(totals, row, strict=True)]
    rows.append(("in all", *_signed(audit, totals)))
    return table_of(("from", *audit.workload.organizations), rows)


def _stability(audit: Audit) -> FittingTable:
    sampled = "" if audit.orderings is None else "sampled "
    total, names = audit.schedules[0].stability.coalitions, audit.workload.organizations
    rows: list[tuple[str, ...]] = []
    for assessed in audit.schedules:
        found = assessed.stability
        first = (assessed.result.schedule.policy, whole(found.gaining))
        if found.strongest is None:
            rows.append((*first, *("" for _ in _GAIN), "nobody"))
        for named, coalition in found.reasons(names):
            rows.append((*first, *_gain(coalition), named))
            first = ("", "")
    who = "strongest reason to leave"
    gaining = f"gaining of {total:,} {sampled}coalitions"
    return table_of(("schedule", gaining, *_GAIN, who), rows, texts=(who,))


def _alone(audit: Audit) -> FittingTable:
    rows = [
        (
            name,
            *(sooner(each.stability.organizations[u].earlier) for each in audit.schedules),
        )
        for u, name in enumerate(audit.workload.organizations)
    ]
    policies = (assessed.result.schedule.policy for assessed in audit.schedules)
    return table_of(("organization", *policies), rows)


_GAIN = ("relative", "alone", "if fair")


def _gain(coalition: Coalition) -> tuple[str, str, str]:
    relative = coalition.relative_gain
    return (
        "∞" if relative is None else percent(relative, digits=2, sign="+"),
        sooner(coalition.earlier),
        sooner(coalition.earlier_if_fair),
    )


def _processor_hours(processor_seconds: int, sign: str = "") -> str:
    return decimal(Fraction(processor_seconds, HOUR), sign) if processor_seconds else "0"


def _signed(audit: Audit, processor_seconds: Sequence[int]) -> Iterator[str]:
    sign = "" if audit.carried is None else "+"
    return (_processor_hours(seconds, sign) for seconds in processor_seconds)


def _moment(log: Log, audit: Audit, second: int) -> str:
    """Formats a time of the window: as local date, or as seconds since the first release."""
    window = audit.workload.window
    if log.epoch is None:
        return f"{window.start - int(log.release.min()) + second:,} s"
    return local_minute(log.epoch + window.start + second)


def audit_log(parameters: AuditParameters) -> None:
    """Audits a log, and shows and writes the results."""
    with progress_bars() as bar:
        log, workload = workload_for(
            parameters.workload,
            bar,
            wide=parameters.wide,
            backfill=parameters.backfill,
            confine=kept_to_clusters,
        )
        in_force, after_end = stored_in(parameters.workload, log, workload.window)
        found = audit(
            workload,
            orderings=parameters.orderings,
            compared=in_force.compared,
            guarantee=parameters.guarantee,
            period=parameters.period,
            seed=parameters.workload.seed,
            cores=parameters.cores,
            bar=lambda policy: bar(policy, workload.window.length),
        )

    def page() -> Page:
        from shapleyprio.reports.audit_page import audit_page

        return audit_page(
            log,
            found,
            options={
                "seed": str(parameters.workload.seed),
                "period": f"{parameters.period:,} s",
            },
            command=parameters.report.command,
            continued=log.window is not None,
            after_end=after_end,
            in_force=in_force,
        )

    publish(parameters.report, page)
    show = parameters.json_file is None or write_json(
        parameters.json_file, audit_as_json(log, found, after_end)
    )
    if show:
        render(standard_output(highlight=False), log, found, after_end, in_force)


def stored_in(
    parameters: WorkloadParameters, log: Log, window: Window
) -> tuple[InForce, Sequence[UserAfterEnd]]:
    """Returns what was in force in a window, and whose jobs went on after their ends, if known."""
    begin, end = window.start, window.start + window.length
    if log.format not in ("store", "export"):
        return InForce(begin=begin, end=end), ()
    with Store.open(store_url(parameters.log[0])) as store:
        ledgers = [store.cluster(one.cluster) for one in log.clusters or (log,)]
        users = users_after_end(ledgers, begin, end, MOST_USERS)
        return read_in_force(ledgers, begin, end), users
