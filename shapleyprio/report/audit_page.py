"""The report of an audit: how fair the recorded schedule was, and who would have left."""

from __future__ import annotations

from collections.abc import Mapping

from shapleyprio.audit.auditing import Audit
from shapleyprio.replay.log import Log
from shapleyprio.report import audit_sections, replay_sections
from shapleyprio.report.page import Page
from shapleyprio.report.provenance import versions
from shapleyprio.report.replay_page import choice_of, parameters_of
from shapleyprio.report.replayed import Replayed
from shapleyprio.wording import duration, whole


def audit_page(
    log: Log, audit: Audit, *, options: Mapping[str, str], command: str | None = None
) -> Page:
    """Makes the report of an audit.

    Args:
        log: that was read.
        audit: what was found out about it.
        options: name -> value: what else was asked for.
        command: that makes the report anew.

    Raises:
        ReplayError: the log cannot be read any more.
    """
    results = [assessed.result for assessed in audit.schedules]
    fair = audit.reference.result.schedule.policy
    replayed = Replayed(log, audit.workload, results, reference=fair)
    drift = replay_sections.drift(replayed)
    return Page(
        title=f"How fair was it? {log.source.rpartition('/')[2]}",
        verdict=verdict(audit),
        sections=(
            replay_sections.comparison(replayed),
            audit_sections.delays(replayed, audit),
            replay_sections.lending(replayed),
            audit_sections.exchange(replayed, audit),
            audit_sections.stability(audit),
            audit_sections.alone(replayed, audit),
            *([] if drift is None else [drift]),
            replay_sections.standing(replayed),
            replay_sections.waits(replayed),
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
    )


def verdict(audit: Audit) -> str:
    """Returns the outcome in two sentences."""
    return f"{_how_fair(audit)} {_how_stable(audit)}"


def _how_fair(audit: Audit) -> str:
    recorded, names = audit.recorded, audit.workload.organizations
    latest, delay = audit.latest
    clause = (
        f"{names[latest]} waited longest: a part of its work came {duration(float(delay))}"
        " later than was fair"
        if delay > 0
        else "nobody's work came later than was fair"
    )
    gap = duration(float(recorded.result.unfairness or 0))
    return f"A part of work came {gap} too early or too late on average, and {clause}."


def _how_stable(audit: Audit) -> str:
    found, names = audit.recorded.stability, audit.workload.organizations
    strongest = found.strongest
    if strongest is None:
        return "No organization or group of them would have had more alone."
    clause = ""
    if strongest.earlier is not None and strongest.earlier_if_fair is not None:
        alone, fair = float(strongest.earlier), float(strongest.earlier_if_fair)
        clause = (
            f": alone a part of their work would have come {duration(alone)} earlier, in the fair "
            f"schedule {duration(abs(fair))} {'earlier' if fair >= 0 else 'later'} without leaving"
        )
    return (
        f"Of {found.coalitions:,} coalitions {found.gaining:,} would have had more alone, and "
        f"{strongest.named(names)} had the strongest reason to leave{clause}."
    )


def _coalitions(audit: Audit) -> str:
    if audit.orderings is None:
        return "all"
    return f"sampled from {audit.orderings} random orderings"
