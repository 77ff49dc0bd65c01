"""What an audit found, in sentences: the outcome, what to do, and what to keep in mind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from shapleyprio.common.wording import HOUR, clock_time, count, duration, percent, whole
from shapleyprio.common.wording import delay as in_words
from shapleyprio.replay.audit.auditing import Assessed, Audit
from shapleyprio.replay.audit.in_force import InForce
from shapleyprio.replay.audit.results import OWNERS_UNKNOWN
from shapleyprio.replay.audit.stability import Coalition
from shapleyprio.replay.policies.registry import OURS, title_of
from shapleyprio.store import UserAfterEnd

NOTHING = 1
"""Seconds that are not worth a word, as a delay."""


def verdict(audit: Audit) -> str:
    """Returns the outcome in one sentence."""
    names = audit.workload.organizations
    latest, delay = audit.latest
    clause = (
        f"{names[latest]} came off worst: it was {in_words(delay)}"
        if delay >= NOTHING
        else "no organization was late"
    )
    return f"On average work came {audit.recorded.result.gap} too early or too late, and {clause}."


def all_of(parent: str) -> str:
    """Returns what a union is called, by its parent."""
    return f"all of {parent}"


def stability(audit: Audit) -> str:
    """Returns who would have had more alone, and why that is to be taken with care."""
    found, fair = audit.recorded.stability, audit.reference
    if found.strongest is None:
        return "Stable: no organization or group of them would have had more alone."
    names = audit.workload.organizations
    sampled = "" if audit.orderings is None else "sampled "
    cut = "" if audit.workload.wide == "rigid" else ", wide jobs"
    return (
        f"On paper {whole(found.gaining)} of {whole(found.coalitions)} {sampled}groups of "
        f"organizations would have had more alone, with their own nodes only; in the fair "
        f"schedule {whole(fair.stability.gaining)}. Being alone looks better here than it would "
        f"be: what happened had to cope with outages, partitions{cut} and earlier work, and what "
        f"it is compared with did not. The strongest reason to part had "
        f"{found.strongest.named(names)}{_prospects(found.strongest)}."
    )


def advice(
    audit: Audit, after_end: Sequence[UserAfterEnd] = (), in_force: InForce | None = None
) -> tuple[str, ...]:
    """Returns what follows from it, for those who decide.

    Args:
        audit: what was found.
        after_end: users of jobs that continued after their end, most first.
        in_force: who ordered the queue; None if that is not known.
    """
    known = in_force if in_force is not None and in_force.steering else None
    order = _on_order(audit) if known is None else [_on_rule(audit, known)]
    return (*order, *_advice(audit), *_about_work_after_end(after_end[:1]))


def _on_rule(audit: Audit, in_force: InForce) -> str:
    """Returns what to make of the order where shapleyprio decided it."""
    now, gap = in_force.steering[-1], audit.recorded.result.gap
    if in_force.since is None:
        return (
            "Let shapleyprio order the queue again, or say why not: it has not done so "
            f"since {clock_time(now.since)}."
        )
    rule, since = now.rule, clock_time(in_force.since)
    if rule != now.chosen:
        return (
            "Find out, in the daemon's log or by `shapleyprio check`, why the rule "
            f"{now.chosen} has no estimates: {rule} ranks instead since {clock_time(now.since)}."
        )
    if rule != in_force.rule or not in_force.whole:
        return (
            "Wait for the next period before you change the order of the queue: the rule "
            f"{rule} of shapleyprio has decided it only since {since}."
        )
    what = "limits, partitions, outages, wide jobs, or other factors of Slurm"
    own = [one for one in audit.schedules if one.result.schedule.policy == rule]
    if own and _unfairness(own[0]) < _unfairness(audit.recorded):
        return (
            f"Find out with `shapleyprio check` what keeps the rule {rule}, which has ordered the "
            f"queue since {since}, from its order: by itself, work would have come "
            f"{own[0].result.gap} too early or too late, instead of {gap}. The rest is due to "
            f"{what}."
        )
    if own and _unfairness(audit.recorded) >= NOTHING:
        return (
            f"Consider the rule shapley: the rule {rule}, which has ordered the queue since "
            f"{since}, would not have been fairer than what happened, and shapley aims at the fair "
            "schedule itself."
        )
    return (
        f"Leave the order of the queue to the rule {rule}, which has decided it since {since}. "
        f"What is left, {gap}, is due to what no order changes: {what}; `shapleyprio check` names "
        "what can be mended."
    )


def _on_order(audit: Audit) -> Iterator[str]:
    """Yields whether to let shapleyprio order the queue."""
    ours = [one for one in audit.schedules if one.result.schedule.policy in OURS]
    best = min(ours, key=_unfairness, default=None)
    if best is not None:
        title = title_of(best.result.schedule.policy)
        if _unfairness(best) < _unfairness(audit.recorded):
            yield (
                f"Let shapleyprio order the queue, or ask what keeps it from doing so: under "
                f"{title} the same jobs would have come {best.result.gap} too early or too late, "
                f"instead of {audit.recorded.result.gap}."
            )
        else:
            yield (
                f"Leave the order of the queue as it is: under {title} the same jobs would have "
                f"come {best.result.gap} too early or too late, which is no fairer."
            )


def _advice(audit: Audit) -> Iterator[str]:
    names = audit.workload.organizations
    latest, delay = audit.latest
    if delay >= NOTHING:
        yield (
            f"Look first at the jobs of {names[latest]}: limits, partitions or wide requests can "
            "hold jobs back, whatever their priority is."
        )
    for found in audit.going_first:
        yield (
            f"Ask who is behind {names[found.organization]}: it brings {percent(found.brings)} of "
            f"the processors for {percent(found.uses)} of the work, and of its "
            f"{count(found.came, 'job')} that came while others waited "
            f"{percent(Fraction(found.went_first, found.came))} went first. An organization gains "
            "by that if it is split in two, one with the nodes and one with the urgent jobs."
        )
    if audit.carried is not None:
        yield from _balance(audit)
    strongest = audit.recorded.stability.strongest
    if strongest is not None and strongest.earlier and strongest.earlier_if_fair is not None:
        yield _about_parting(strongest, strongest.named(names))


def _about_work_after_end(most: Sequence[UserAfterEnd]) -> Iterator[str]:
    for one in most:
        if one.processor_seconds >= HOUR:
            yield (
                f"Ask user {one.user} of {one.organization or 'no organization'} why jobs continue "
                f"after their end: {_hours(one.processor_seconds)} of {count(one.jobs, 'job')} do "
                "not count. A shorter KillWait in slurm.conf leaves less such work."
            )


def _balance(audit: Audit) -> Iterator[str]:
    """Yields who gave and who took most, if anybody did."""
    each_period = (period.lent or () for period in audit.periods)
    lent = [sum(each) for each in zip(*each_period, strict=True)]
    if not any(lent):
        return
    names = audit.workload.organizations
    gave, took = (pick(range(len(lent)), key=lent.__getitem__) for pick in (max, min))
    yield (
        f"Pay nothing back: {names[took]}'s jobs used {_hours(-lent[took])} more than its nodes "
        f"gave, and {names[gave]} gave {_hours(lent[gave])} more than it used. The ranking counts "
        "that by itself."
    )


def _about_parting(strongest: Coalition, named: str) -> str:
    alone, fair = strongest.earlier or Fraction(0), strongest.earlier_if_fair or Fraction(0)
    if fair >= alone * Fraction(9, 10):
        return (
            f"See no reason to part: a fair order would give {named} about as much without leaving."
        )
    return (
        f"Talk with {named}: alone their work would have come {_time(alone)} earlier, and a fair "
        f"order gives them {_time(max(fair, Fraction(0)))} of that."
    )


def caveats(audit: Audit, *, continued: bool = False) -> Iterator[str]:
    """Yields what the figures do not say.

    Args:
        audit: what was found.
        continued: whether what ran and waited when the period began is part of all schedules.
    """
    begin = (
        "go on from what ran and waited when the period began"
        if continued
        else "begin with an empty system"
    )
    wide = "" if audit.workload.wide == "rigid" else ", and start wide jobs piece by piece"
    yield (
        f"All schedules but what happened are simulations: they {begin}, know of no outages, "
        f"partitions or limits{wide}. So what happened looks less fair than it was, and being "
        "alone looks better."
    )
    yield (
        "What was not done when the period ended counts as done right then. The longer the "
        "period, the less that matters."
    )
    if audit.orderings is not None:
        yield (
            f"Coalitions were sampled from {audit.orderings} random orderings and start jobs by "
            "release, so the fair schedule is an estimate; others may have more reason to leave."
        )
    if audit.carried is None:
        reason = f"{OWNERS_UNKNOWN[0].upper()}{OWNERS_UNKNOWN[1:]}"
        yield f"{reason}: contributions and who carried whom are left out."
    if reasons := audit.workload.left_out_in_words:
        yield f"Left out: {reasons}."
    if audit.unknown_starts:
        yield f"{count(audit.unknown_starts, 'job')} without a recorded start count as not started."


def _prospects(coalition: Coalition) -> str:
    """Returns what leaving would have brought a coalition, and what fairness would have."""
    alone, fair = coalition.earlier, coalition.earlier_if_fair
    if alone is None or fair is None:
        return ""
    when = "earlier" if fair >= 0 else "later"
    return (
        f": alone their work would have come {_time(alone)} earlier, in the fair schedule "
        f"{_time(abs(fair))} {when} without leaving"
    )


def _unfairness(assessed: Assessed) -> Fraction:
    return assessed.result.unfairness or Fraction(0)


def _time(seconds: Fraction) -> str:
    return duration(float(seconds))


def _hours(processor_seconds: int) -> str:
    return f"{whole(round(processor_seconds / HOUR))} processor-hours"
