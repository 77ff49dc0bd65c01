"""Why jobs wait where they wait and when they will start, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from shapleyprio.cli.shown.ranks import counted, on_exception, sentence, sentences_on_rank
from shapleyprio.cli.shown.waiting_work import sentences_on_waiting_work
from shapleyprio.common.wording import clock_minute, clock_time, count, duration
from shapleyprio.daemon.answering.explain_facts import (
    Basis,
    JobExplanation,
    JobsExplanation,
    OrganizationJobs,
    Outside,
    Prospect,
)
from shapleyprio.daemon.answering.explain_ranks import RankedOrganization
from shapleyprio.daemon.answering.what_if import WhatIf
from shapleyprio.daemon.forecasting.messages import LimitCost
from shapleyprio.fairness.rules import RULES
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.port import PendingJob
from shapleyprio.slurm.reasons import lack_of
from shapleyprio.store import LATER, ForecastRow, Push, PushState, WaitingWork

WAITS = {
    "turn": "it waits for its turn",
    "processors": "it waits for processors",
    "reservation": "by its time limit it may run into a reservation of all nodes",
    "limit": "jobs like it that are ahead of it have met a limit",
}
"""What a job waits for that lacks nothing else, in words."""


def sentences_on_start(prospect: Prospect | None) -> list[str]:
    """Says when a job probably starts; nothing without a forecast or a reason why there is none."""
    if prospect is None:
        return []
    lacks = None if prospect.reason is None else lack_of(prospect.reason).in_words
    if prospect.forecast is None:
        if lacks is None:
            return []
        return [f"Its start is not forecast: {lacks} ({prospect.reason})."]
    waits = lacks or WAITS[prospect.waits_for]
    sentences = [_on_interval(prospect.forecast), _on_hour(prospect.forecast, waits)]
    return sentences if prospect.cost is None else [*sentences, _on_limit(prospect.cost)]


def _on_limit(cost: LimitCost) -> str:
    return (
        f"Nine in ten of its user's last {cost.jobs} similar jobs ran for at most "
        f"{duration(cost.limit)}: with that time limit it would start about "
        f"{duration(cost.sooner)} sooner."
    )


def sentences_on_what_if(found: WhatIf) -> list[str]:
    """Says when a job would start that is submitted now."""
    job = found.job
    sentences = [
        f"Suppose that a job of account {found.account} is submitted now, for at most "
        f"{duration(job.limit)} on {count(job.processors, 'processor')} of partition "
        f"{job.partition}."
    ]
    if found.organization is None:
        sentences.append("It counts for no organization, so the jobs of all others go first.")
    waits, age = WAITS[found.forecast.waits_for], f", {duration(found.age)} ago"
    return [*sentences, _on_interval(found.forecast), _on_hour(found.forecast, waits, age)]


def _on_interval(found: ForecastRow) -> str:
    def moment(second: int) -> str:
        return clock_minute(second, found.t)

    if found.early == LATER or found.median == LATER:
        return "It probably does not start in the next four weeks."
    half = f"in half of all cases by {moment(found.median)}"
    if found.late == LATER:
        return f"It probably starts after {moment(found.early)}, {half}."
    early, late = moment(found.early), moment(found.late)
    if early == late:
        return f"It probably starts at {early}."
    return f"It probably starts between {early} and {late}, {half}."


def _on_hour(found: ForecastRow, waits: str, age: str = "") -> str:
    return (
        f"The chance that it does within an hour is {found.within_hour}%, as of "
        f"{clock_minute(found.t, found.t)}{age}; {waits}."
    )


NO_REASON = "None"
"""What Slurm shows of a job that its scheduler has not looked at yet."""

SET_BY_HAND = {"priority": "priority itself", "site_factor": "site factor", "nice": "nice"}
"""What somebody may set at a job -> what to call it."""


def sentences_on_job(explanation: JobExplanation, influence: int | None, channel: str) -> list[str]:
    """Says why one job waits where it waits.

    Args:
        explanation: the facts.
        influence: points between the first and the last organization, None for strict order.
        channel: what priorities are written to.
    """
    job = explanation.job
    state = (
        _on_last_write(explanation.label, explanation.pushes[0]) if job is None else _on_state(job)
    )
    accounts = () if job is None else (job.account,)
    outside = _on_outside(explanation.outside, accounts, channel)
    return [
        *_on_basis(explanation.basis),
        *state,
        *sentences_on_start(explanation.prospect),
        *_on_submission(job, explanation.given),
        *sentences_on_rank(explanation.ranked, explanation.basis, outside, influence),
        *_on_waiting_work(explanation.ranked, "user", "" if job is None else job.user),
        *_on_what_stands(explanation, channel),
        *_on_by_hand(explanation),
        *_on_exceptions(explanation),
        *_on_own(explanation.ranked, explanation.own_ahead),
        *(_on_rule(explanation.basis, influence) if explanation.ranked else ()),
        *(_on_slurm(job, explanation) if job else ()),
    ]


def sentences_on_jobs(
    explanation: JobsExplanation, influence: int | None, channel: str
) -> list[str]:
    """Says why a user's or an account's jobs wait where they wait.

    Args:
        explanation: the facts.
        influence: as for one job.
        channel: so as well.
    """
    sentences = _on_basis(explanation.basis)
    for jobs in explanation.organizations:
        sentences += [
            *_on_count(explanation, jobs),
            *sentences_on_rank(
                jobs.ranked,
                explanation.basis,
                _on_outside(jobs.outside, jobs.accounts, channel),
                influence,
            ),
            *_on_waiting_work(jobs.ranked, explanation.whose, explanation.name),
            *_on_own(jobs.ranked, jobs.own_ahead),
        ]
    if any(jobs.ranked for jobs in explanation.organizations):
        sentences += _on_rule(explanation.basis, influence)
    return sentences


def _on_basis(basis: Basis) -> list[str]:
    if basis.away is None:
        return []
    return [f"Slurm does not show its queue: {basis.away}. What follows is from the last cycle."]


def _on_state(job: PendingJob) -> list[str]:
    sentences = [f"Job {job.label} of account {job.account} waits with priority {job.priority}."]
    if job.priority == 0:
        sentences.append("It is held: its priority is 0 until it is released.")
    return sentences


def _on_submission(job: PendingJob | None, given: Push | None) -> list[str]:
    if given is None:
        return []
    when = "" if job is None else f", at {clock_time(job.submit)}"
    return [f"It got {given.new} points when it was submitted{when}, {given.reason}."]


def _on_last_write(label: str, push: Push) -> list[str]:
    if push.state is PushState.AT_SUBMISSION:
        return [
            f"It is not known whether job {label} is still pending; it was seen at "
            f"{clock_time(push.at)}."
        ]
    return [
        f"It is not known whether job {label} is still pending; at {clock_time(push.at)} its "
        f"{push.channel} was to become {push.new} ({push.state})."
    ]


def _on_count(explanation: JobsExplanation, jobs: OrganizationJobs) -> list[str]:
    name, accounts = f"{explanation.whose.capitalize()} {explanation.name}", ""
    if explanation.whose == "user":
        accounts = f" of account {' and '.join(jobs.accounts)}"
    if jobs.waiting is None:
        return [
            f"{name} had {counted(jobs.running)}{accounts} running; its pending jobs are not known."
        ]
    held = f", {jobs.held} of them held," if jobs.held else ""
    sentences = [
        f"{name} has {counted(jobs.waiting)}{accounts} waiting{held} and {jobs.running} running."
    ]
    if jobs.oldest is not None:
        sentences.append(
            f"Waiting longest is job {jobs.oldest.label}, submitted at "
            f"{clock_time(jobs.oldest.submit)}."
        )
    if jobs.next_job is not None:
        sentences.append(
            f"Next in line is job {jobs.next_job.label} with priority {jobs.next_job.priority}. "
            f"{sentence(_have((jobs.ahead or 0) - (jobs.tied_ahead or 0)))} a higher one"
            f"{_tied(jobs.tied_ahead or 0)}."
        )
        sentences += sentences_on_start(jobs.prospect)
    return sentences


def _on_outside(outside: Outside | None, accounts: Sequence[str], channel: str) -> list[str]:
    """Says why jobs count for no organization, and what follows."""
    several = len(accounts) > 1
    which = f"{'Accounts' if several else 'Account'} {' and '.join(accounts)}"
    own = "Slurm's other factors alone order them, behind jobs with points."
    if outside is Outside.PARTITION:
        kept = CHANNELS[channel]
        points = "get no points. " + own
        if not kept.per_job:
            points = f"keep the points of their {kept.carrier}."
        return [
            "The partition is left out (fairness.leave_out_partitions): jobs in it count neither "
            f"for nor against an organization, and {points}"
        ]
    if outside is Outside.ACCOUNT:
        return [
            f"{which} {'are' if several else 'is'} left out (fairness.leave_out_accounts): such "
            "jobs count neither for nor against an organization, and get no points. "
            f"{own}"
        ]
    if outside is Outside.UNCLAIMED:
        return [
            f"No organization claims {which[0].lower()}{which[1:]}, so such jobs get no points. "
            f"{own} The daemon's administrator can add it to the `accounts` of one."
        ]
    return ["It counts for no organization, so it gets no points."]


def _on_waiting_work(
    ranked: RankedOrganization | None, whose: Literal["user", "account"], name: str
) -> list[str]:
    """Says what counts in the estimate, and how much of it is a user's or an account's."""

    def is_theirs(row: WaitingWork) -> bool:
        return (row.user if whose == "user" else row.account) == name

    if ranked is None:
        return []
    of_whom = name and f"{whose} {name}"
    return sentences_on_waiting_work(ranked.organization, ranked.waiting_work, of_whom, is_theirs)


def _on_own(ranked: RankedOrganization | None, ahead: int | None) -> list[str]:
    if ranked is None or not ahead:
        return []
    verb = "is" if ahead == 1 else "are"
    return [f"{sentence(counted(ahead))} of {ranked.organization} itself {verb} ahead."]


def _on_what_stands(explanation: JobExplanation, channel: str) -> list[str]:
    """Says the value in Slurm, where that is not what the rank gives."""
    job, ranked = explanation.job, explanation.ranked
    written = [push for push in explanation.pushes if push.channel == channel]
    if job is None or ranked is None or explanation.exception is not None:
        return []
    original = written[0].original if written else None
    odd = CHANNELS[channel].explained(job, original, ranked.points)
    return [] if odd is None else [f"But in Slurm {odd}."]


def _on_by_hand(explanation: JobExplanation) -> list[str]:
    sentences = []
    for kind, value in explanation.by_hand.items():
        sentences.append(
            f"Its {SET_BY_HAND[kind]} was set to {value} by hand, and is left as it is."
        )
        if kind == "priority":
            sentences.append("No points count for it until an operator holds and releases it.")
    return sentences


def _on_exceptions(explanation: JobExplanation) -> list[str]:
    """Says that it goes first because of an order, or that others do."""
    sentences = []
    row, paused = explanation.exception, explanation.basis.paused
    if row is not None and not (paused and row.by_guarantee):
        sentences.append(on_exception("it", row, paused=paused))
    if explanation.put_ahead and not paused:
        verb = "goes" if explanation.put_ahead == 1 else "go"
        sentences.append(
            f"{sentence(counted(explanation.put_ahead))} {verb} first by exceptions or "
            "guarantees; `shapleyprio status` says which."
        )
    return sentences


def _on_rule(basis: Basis, influence: int | None) -> list[str]:
    dynamics = [RULES[basis.rule].dynamics] if basis.rule in RULES else []
    if basis.paused:
        return dynamics
    order = (
        "The order of organizations is strict: age, size and the other factors of Slurm decide "
        "only among jobs of one organization."
        if influence is None
        else f"The order of organizations weighs {influence} points from first to last: age and "
        "the other factors of Slurm can outweigh it."
    )
    return [order, *dynamics]


def _on_slurm(job: PendingJob, explanation: JobExplanation) -> list[str]:
    tied = explanation.tied_ahead or 0
    higher = (explanation.ahead or 0) - tied
    have = f"In all {_have(higher)}" if higher else "No job has"
    known = job.reason not in {"", NO_REASON}
    reason = f"says it waits for {job.reason}" if known else "has not said yet why it waits"
    sentences = [f"{have} a higher priority{_tied(tied)}; Slurm {reason}."]
    if job.nice > 0:
        sentences.append(f"Its nice of {job.nice} takes as many points away from it.")
    return sentences


def _tied(jobs: int) -> str:
    """Returns what follows about jobs of the same priority; empty if none of them is ahead."""
    if not jobs:
        return ""
    verb = "is" if jobs == 1 else "are"
    return (
        f", and {counted(jobs)} with the same one {verb} ahead, since Slurm then takes first what "
        "was submitted first"
    )


def _have(jobs: int) -> str:
    return f"{counted(jobs)} {'has' if jobs == 1 else 'have'}"
