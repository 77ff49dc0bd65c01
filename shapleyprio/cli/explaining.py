"""Explanations in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from shapleyprio.cli.common import clock_time
from shapleyprio.service.explain_facts import (
    Basis,
    JobExplanation,
    JobsExplanation,
    OrganizationJobs,
)
from shapleyprio.service.explain_places import SECONDS_OF_AN_HOUR, Place
from shapleyprio.slurm.port import PendingJob
from shapleyprio.store import Push

SECONDS_OF_A_DAY = 86_400


def sentences_on_job(told: JobExplanation, influence: int | None) -> list[str]:
    """Why one job waits where it waits.

    Args:
        told: the facts.
        influence: points between the first and the last organization, None for strict order.
    """
    job = told.job
    state = _on_last_write(told.label, told.pushes[0]) if job is None else _on_state(job)
    accounts = () if job is None else (job.account,)
    return [
        *_on_basis(told.basis),
        *state,
        *_on_place(told.place, told.basis, accounts, influence),
        *_on_own(told.place, told.own_ahead),
        *(_on_rule(influence) if told.place else ()),
        *(_on_slurm(job, told.ahead or 0) if job else ()),
    ]


def sentences_on_jobs(told: JobsExplanation, influence: int | None) -> list[str]:
    """Why a user's or an account's jobs wait where they wait.

    Args:
        told: the facts.
        influence: as for one job.
    """
    sentences = _on_basis(told.basis)
    for jobs in told.organizations:
        sentences += [
            *_on_count(told, jobs),
            *_on_place(jobs.place, told.basis, jobs.accounts, influence),
            *_on_own(jobs.place, jobs.own_ahead),
        ]
    if any(jobs.place for jobs in told.organizations):
        sentences += _on_rule(influence)
    return sentences


def _on_basis(basis: Basis) -> list[str]:
    if basis.away is None:
        return []
    return [f"Slurm does not tell who waits: {basis.away}. What follows is from the last cycle."]


def _on_state(job: PendingJob) -> list[str]:
    sentences = [f"Job {job.label} of account {job.account} waits with priority {job.priority}."]
    if job.priority == 0:
        sentences.append("It is held: its priority is 0 until it is released.")
    return sentences


def _on_last_write(label: str, push: Push) -> list[str]:
    return [
        f"Whether job {label} still waits is not known; at {clock_time(push.at)} its "
        f"{push.channel} was to become {push.new} ({push.state})."
    ]


def _on_count(told: JobsExplanation, jobs: OrganizationJobs) -> list[str]:
    name, accounts = f"{told.whose.capitalize()} {told.name}", ""
    if told.whose == "user":
        accounts = f" of account {' and '.join(jobs.accounts)}"
    if jobs.waiting is None:
        return [f"{name} had {_jobs(jobs.running)}{accounts} running; who waits is not known."]
    held = f", {jobs.held} of them held," if jobs.held else ""
    sentences = [
        f"{name} has {_jobs(jobs.waiting)}{accounts} waiting{held} and {jobs.running} running."
    ]
    if jobs.oldest is not None:
        sentences.append(
            f"Waiting longest is job {jobs.oldest.label}, submitted at "
            f"{clock_time(jobs.oldest.submit)}."
        )
    if jobs.next_job is not None:
        sentences.append(
            f"Next in line is job {jobs.next_job.label} with priority {jobs.next_job.priority}. "
            f"{_sentence(_have(jobs.ahead or 0))} a higher one."
        )
    return sentences


def _on_place(
    place: Place | None, basis: Basis, accounts: Sequence[str], influence: int | None
) -> list[str]:
    if basis.t is None:
        return ["No cycle has succeeded yet, so balances are not known."]
    if place is None:
        which = f"account {' and '.join(accounts)}" if accounts else "its account"
        return [f"No organization claims {which}, so it gets no points from us."]
    before = sum(place.before.values())
    stand = "wait" if influence else "are ahead"
    if before == 1:
        stand = "waits" if influence else "is ahead"
    return [
        f"By {clock_time(basis.t)} {place.organization} had received "
        f"{_received(place.received)} it had contributed; {_on_age(basis.horizon)}.",
        f"That is place {place.place} of {place.organizations} and gives its jobs "
        f"{place.points} points.",
        f"{_sentence(_jobs(before))} of organizations with a higher balance {stand}"
        f"{_by_name(place.before)}.",
        _on_fair_share(place, basis.horizon),
    ]


def _on_fair_share(place: Place, horizon: int | None) -> str:
    each = place.used_each
    since = "it owns no processors"
    if each is not None:
        when = "so far" if horizon is None else f"in the last {_span(horizon)}"
        since = f"its jobs used {_hours(each)} hours of each processor it owns {when}"
    before = sum(place.before_by_fair_share.values())
    return (
        f"Under Slurm's fair share, with the processors owned as shares, it would be place "
        f"{place.fair_share_place} of {place.organizations}, because {since}: {_jobs(before)} of "
        f"other organizations would be ahead{_by_name(place.before_by_fair_share)}."
    )


def _on_own(place: Place | None, ahead: int | None) -> list[str]:
    if place is None or not ahead:
        return []
    return [f"{_sentence(_have(ahead, f'of {place.organization} itself'))} a higher priority."]


def _on_rule(influence: int | None) -> list[str]:
    order = (
        "The order of organizations is strict: age, size and the other factors of Slurm decide "
        "only among jobs of one organization."
        if influence is None
        else f"The order of organizations weighs {influence} points from first to last: age and "
        "the other factors of Slurm can outweigh it."
    )
    return [
        order,
        "An organization's place rises as its nodes work for others, and falls as its jobs run.",
    ]


def _on_slurm(job: PendingJob, ahead: int) -> list[str]:
    reason = job.reason or "nothing in particular"
    sentences = [f"In all {_have(ahead)} a higher priority; Slurm says it waits for {reason}."]
    if job.nice > 0:
        sentences.append(f"Its nice of {job.nice} takes as many points away from it.")
    return sentences


def _received(amount: Fraction) -> str:
    if not amount:
        return "as much as"
    return f"{_hours(abs(amount))} processor-hours' worth {'more' if amount > 0 else 'less'} than"


def _on_age(horizon: int | None) -> str:
    most = "" if horizon is None else f", up to an age of {_span(horizon)}"
    return f"the earlier work was done, the more it counts{most}"


def _by_name(before: Mapping[str, int]) -> str:
    some = [f"{name} {jobs}" for name, jobs in before.items() if jobs]
    return f" ({', '.join(some)})" if some else ""


def _jobs(number: int) -> str:
    return f"{number or 'no'} {'job' if number == 1 else 'jobs'}"


def _have(jobs: int, of: str = "") -> str:
    whose = f" {of}" if of else ""
    return f"{_jobs(jobs)}{whose} {'has' if jobs == 1 else 'have'}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _hours(seconds: Fraction) -> str:
    hours = float(seconds / SECONDS_OF_AN_HOUR)
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.3g}"


def _span(seconds: int) -> str:
    if seconds >= 2 * SECONDS_OF_A_DAY:
        return f"{seconds / SECONDS_OF_A_DAY:.3g} days"
    return f"{seconds / SECONDS_OF_AN_HOUR:.3g} hours"
