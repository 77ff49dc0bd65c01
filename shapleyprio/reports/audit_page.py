"""The report of an audit: how fair the recorded schedule was, and who would have left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shapleyprio.common.wording import whole
from shapleyprio.replay.audit.auditing import Audit
from shapleyprio.replay.audit.findings import advice, caveats, verdict
from shapleyprio.replay.audit.in_force import InForce
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import period_in_words
from shapleyprio.reports import audit_sections, replay_sections
from shapleyprio.reports.html.page import Cell, Front, Page, Section, versions
from shapleyprio.reports.replay_page import about, choice_of, parameters_of, reading
from shapleyprio.reports.replayed import Replayed
from shapleyprio.store import UserAfterEnd


def audit_page(
    log: Log,
    audit: Audit,
    *,
    options: Mapping[str, str],
    command: str | None = None,
    title: str | None = None,
    earlier: Audit | None = None,
    continued: bool = False,
    lacks: Sequence[str] = (),
    after_end: Sequence[UserAfterEnd] = (),
    waits: Sequence[Sequence[Cell]] = (),
    in_force: InForce | None = None,
) -> Page:
    """Makes the report of an audit.

    Args:
        log: that was read.
        audit: what was found out about it.
        options: name -> value: what else was asked for.
        command: that repeats the report.
        title: of the page; None to name the log.
        earlier: the same of the period before; None to show the period alone.
        continued: whether what ran and waited when the period began is part of all schedules.
        lacks: what of the period, and of the one before, is missing, in words.
        after_end: users of jobs that continued after their end, most first.
        waits: organization, partition, how many jobs of it started there, and how long half of
            them, nine in ten, and all had waited at most, in seconds.
        in_force: who ordered the queue, and what changed hands; None if that is not known.

    Raises:
        ReplayError: the log cannot be read any more.
    """
    results = [assessed.result for assessed in audit.schedules]
    fair = audit.reference.result.schedule.policy
    replayed = Replayed(log, audit.workload, results, reference=fair)
    return Page(
        title=title or f"How fair was it? {log.source.rpartition('/')[2]}",
        verdict=verdict(audit),
        sections=(
            audit_sections.outcome(replayed, audit),
            replay_sections.comparison(replayed),
            replay_sections.lending(replayed),
            audit_sections.exchange(replayed, audit),
            audit_sections.stability(audit),
            audit_sections.alone(replayed, audit),
            *replay_sections.drift(replayed),
            *replay_sections.owed(replayed),
            replay_sections.waits(replayed),
            *([audit_sections.waits_by_partition(waits)] if waits else []),
            *([audit_sections.guarantees(audit)] if audit.guarantees else []),
            replay_sections.utilization(replayed),
        ),
        parameters={
            **parameters_of(log, audit.workload),
            "jobs without a recorded start": whole(audit.unknown_starts),
            "coalitions": _coalitions(audit),
            **options,
            "versions": versions(),
        },
        organizations=replayed.colors,
        choice=choice_of(replayed),
        command=command,
        front=Front(
            about=(
                *about(log, audit.workload),
                *(() if in_force is None else in_force.sentences()),
            ),
            reading=reading(fair, replayed.policies),
            advice=advice(audit, after_end, in_force),
            caveats=(*lacks, *caveats(audit, continued=continued)),
            before=_before(log, audit, earlier),
        ),
    )


def _before(log: Log, audit: Audit, earlier: Audit | None) -> Section | None:
    if earlier is None:
        return None
    return audit_sections.before(audit, earlier, period_in_words(log, earlier.workload.window))


def _coalitions(audit: Audit) -> str:
    if audit.orderings is None:
        return "all"
    return f"sampled from {audit.orderings} random orderings"
