"""The report of a replay: what policies made of a log, and what audits' pages share with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shapleyprio.common.wording import duration, listed, whole
from shapleyprio.replay.policies import RECORDED, REFERENCE, SAMPLED_REFERENCE
from shapleyprio.replay.policies.registry import OURS, title_of, under
from shapleyprio.replay.results import Result, jobs_of
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Workload, period_in_words
from shapleyprio.reports import replay_sections
from shapleyprio.reports.html.page import Choice, Front, Page, checksum, versions
from shapleyprio.reports.replayed import Replayed

MOST_NAMED = 12
"""Organizations that the first page names; all are in the tables."""


def about(log: Log, workload: Workload) -> tuple[str, ...]:
    """Returns whose cluster and which time a result is about."""
    owned, jobs = workload.owned.tolist(), jobs_of(workload)
    members = [
        f"{name} ({whole(processors)})"
        for name, processors in zip(workload.organizations, owned, strict=True)
    ]
    return (
        f"Consortium: {listed(members, MOST_NAMED)}; {whole(sum(owned))} processors in all",
        f"Period: {whole(sum(jobs))} jobs, released {period_in_words(log, workload.window)} "
        f"({duration(workload.window.length)})",
    )


def reading(reference: str, policies: Sequence[str]) -> str:
    """Returns what the words on the page mean.

    Args:
        reference: the policy whose schedule counts as fair.
        policies: that are on the page.
    """
    estimated = (
        " (estimated from random orders in which coalitions grow)"
        if reference == SAMPLED_REFERENCE
        else ""
    )
    ours = [title_of(policy) for policy in policies if policy in OURS]
    named = (
        f" {' and '.join(ours)} is what shapleyprio would have done by its rule of that name."
        if ours
        else ""
    )
    return (
        "Work is counted by processor time: one processor for one second is one part of it. In "
        f"the fair schedule ({reference}) the next free processor always goes to the organization "
        f"that is owed most: for what it is worth to the others (its Shapley value{estimated}), "
        "minus what its jobs got, the more the sooner. “2 h late” means: all that came too late "
        "for an organization, compared with that, and spread over the parts of everybody's work, "
        f"is 2 h.{named}"
    )


def replay_advice(results: Sequence[Result], reference: str) -> tuple[str, ...]:
    """Returns what follows from a replay, for those who decide."""
    others = {
        result.schedule.policy: result.unfairness
        for result in results
        if result.schedule.policy != reference and result.unfairness is not None
    }
    ours = {policy: gap for policy, gap in others.items() if policy in OURS}
    theirs = {policy: gap for policy, gap in others.items() if policy not in OURS}
    if not ours or not theirs:
        return ()
    mine = min(ours, key=ours.__getitem__)
    gap = duration(float(ours[mine]))
    found = []
    for policy, other in theirs.items():
        verb = "improves on" if ours[mine] < other else "does not improve on"
        found.append(
            f"{title_of(mine)} {verb} {title_of(policy)}: work comes {gap} too early or too "
            f"late on average, instead of {duration(float(other))}."
        )
    return tuple(found)


def replay_caveats(workload: Workload, policies: Sequence[str]) -> tuple[str, ...]:
    """Returns what a replay's figures do not say."""
    wide = "" if workload.wide == "rigid" else ", and wide jobs start piece by piece"
    recorded = (
        f" {title_of(RECORDED).capitalize()} had to cope with all that, so it looks less fair than "
        "it was."
        if RECORDED in policies
        else ""
    )
    return (
        "Schedules are simulations: they begin with an empty system and know of no outages, "
        f"partitions or limits{wide}.{recorded}",
        "What was not done when the period ended counts as done right then.",
        *([f"Left out: {reasons}."] if (reasons := workload.left_out_in_words) else []),
    )


def replay_page(
    log: Log,
    workload: Workload,
    results: Sequence[Result],
    *,
    options: Mapping[str, str],
    command: str | None = None,
) -> Page:
    """Makes the report of a replay.

    Args:
        log: that was read.
        workload: what was taken out of it.
        results: of the policies, in order; at least one.
        options: name -> value: what else was asked for.
        command: that repeats the report.

    Raises:
        ReplayError: the log cannot be read any more.
    """
    replayed = Replayed(log, workload, results)
    others = [result for result in results if result.unfairness is not None]
    whose = f"{_to_whom(workload, others)} " if len(others) > 1 else ""
    return Page(
        title=f"What would have been fair? {log.source.rpartition('/')[2]}",
        verdict=verdict(results),
        sections=(
            replay_sections.comparison(replayed),
            *replay_sections.drift(replayed),
            *replay_sections.owed(replayed),
            replay_sections.lending(replayed),
            replay_sections.waits(replayed),
            replay_sections.utilization(replayed),
        ),
        parameters={**parameters_of(log, workload), **options, "versions": versions()},
        organizations=replayed.colors,
        choice=choice_of(replayed),
        command=command,
        front=Front(
            about=about(log, workload),
            reading=f"{whose}{reading(replayed.reference, replayed.policies)}",
            advice=replay_advice(results, replayed.reference),
            caveats=replay_caveats(workload, replayed.policies),
        ),
    )


def choice_of(replayed: Replayed) -> Choice:
    """Returns the choice between the policies."""
    options = {policy: title_of(policy) for policy in replayed.policies}
    return Choice(label="schedule", options=options, initial=replayed.initial)


def verdict(results: Sequence[Result]) -> str:
    """Returns the outcome in one sentence."""
    others = [result for result in results if result.schedule.policy != REFERENCE]
    if others and others[0].unfairness is not None:
        return _how_unfair(others)
    waits = ", ".join(
        f"{duration(float(result.measures.mean_wait))} {under(result.schedule.policy)}"
        for result in results
    )
    if others:
        return f"Jobs waited {waits} on average; only ref could say how fair that is."
    return f"In the fair schedule jobs wait {waits} on average; nothing was compared with it."


def parameters_of(log: Log, workload: Workload) -> dict[str, str]:
    """Describes what was replayed."""
    rigid = f"rigid, backfill {workload.backfill}"
    organizations = (
        f"{name} ({int(owned):,} processors, {jobs:,} jobs)"
        for name, owned, jobs in zip(
            workload.organizations, workload.owned, jobs_of(workload), strict=True
        )
    )
    kept_to = "cluster and partition" if log.clusters else "partition"
    return {
        "log": log.source,
        "SHA-256 of the log": checksum(log.source),
        "format": log.format,
        "window": f"jobs released {period_in_words(log, workload.window)}",
        "jobs": whole(len(workload.job)),
        "left out": workload.left_out_in_words or "nothing",
        "processors": whole(workload.system_processors),
        "organizations": ", ".join(organizations),
        **({} if workload.horizon is None else {"horizon": duration(workload.horizon)}),
        **({} if workload.bays is None else {"nodes of a job": f"those of its {kept_to}"}),
        "jobs of several processors": rigid if workload.wide == "rigid" else "expanded to copies",
    }


def _how_unfair(others: Sequence[Result]) -> str:
    """Returns one sentence on how far policies are from the fair schedule."""
    ordered = sorted(others, key=lambda result: result.unfairness or 0)
    best, worst = ordered[0], ordered[-1]
    if best is worst:
        return (
            f"Compared with the fair schedule, work came {best.gap} too early or too late on "
            f"average {under(best.schedule.policy)}."
        )
    return (
        f"Compared with the fair schedule, work came {best.gap} too early or too late on average "
        f"{under(best.schedule.policy)}, the fairest, and {worst.gap} "
        f"{under(worst.schedule.policy)}, the least fair."
    )


def _to_whom(workload: Workload, others: Sequence[Result]) -> str:
    """Returns one sentence on who gains and who loses most under the least fair policy."""
    worst = max(others, key=lambda result: result.unfairness or 0)
    drifts = dict(zip(workload.organizations, worst.drifts or (), strict=True))
    if not worst.unfairness:
        return "No organization gained or lost anything."
    latest = min(drifts, key=drifts.__getitem__)
    earliest = max(drifts, key=drifts.__getitem__)
    deviations = [
        *([f"{latest} was held back most"] if drifts[latest] < 0 else []),
        *([f"{earliest} was favored most"] if drifts[earliest] > 0 else []),
    ]
    where = under(worst.schedule.policy)
    return f"{where[0].upper()}{where[1:]} {' and '.join(deviations)}."
