"""Where organizations rank and why, and what steers instead at present, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from shapleyprio.common.wording import (
    HOUR,
    clock_time,
    count,
    delay,
    duration,
    duration_in_words,
    listed,
    owed,
    three_digits,
)
from shapleyprio.daemon.answering.explain_facts import Basis
from shapleyprio.daemon.answering.explain_ranks import RankedOrganization
from shapleyprio.daemon.answering.freshness import Steering, sentences_on_guarantees
from shapleyprio.daemon.answering.pool_status import PoolStatus
from shapleyprio.daemon.drift.figures import LastWindow
from shapleyprio.fairness.pool import cluster_behind
from shapleyprio.fairness.rules import DirectContr
from shapleyprio.store import ExceptionRow, PauseRow


def sentences_on_rank(
    ranked: RankedOrganization | None, basis: Basis, outside: list[str], influence: int | None
) -> list[str]:
    """Says where an organization ranks and why.

    Args:
        ranked: where it is; None if the jobs count for none.
        basis: what is known.
        outside: what to say if they count for none.
        influence: points between the first and the last organization, None for strict order.
    """
    if basis.t is None:
        return ["No cycle has succeeded yet, so ranks are not known."]
    if ranked is None:
        return outside
    before = sum(ranked.before.values())
    is_loose = influence or basis.paused
    stand = "wait" if is_loose else "are ahead"
    if before == 1:
        stand = "waits" if is_loose else "is ahead"
    return [
        *_on_why(ranked, basis, clock_time(basis.t)),
        *_on_union(ranked),
        *_on_window(ranked, basis.window),
        f"{sentence(counted(before))} of organizations with a better rank {stand}"
        f"{_by_name(ranked.before)}.",
        _on_fair_share(ranked, basis.horizon),
    ]


def _on_union(ranked: RankedOrganization) -> list[str]:
    union = ranked.union
    if union is None:
        return []
    return [
        f"First, all of {union.parent} ranks as one, and {owed(union.balance_per_part or 0)}: "
        f"{union.rank} of {union.unions}. Within it {ranked.organization} is {union.place} of "
        f"{union.members}."
    ]


def _on_why(ranked: RankedOrganization, basis: Basis, time: str) -> list[str]:
    """Returns the rank and why it is so: by what was given and got, or in the rule's own words."""
    rank = f"rank {ranked.rank} of {ranked.organizations}"
    gives = f"{'would give' if basis.paused else 'gives'} its jobs {ranked.points} points."
    that_is = [f"That is {rank} and {gives}"]
    here = ""
    if basis.pool is not None and basis.pool.spans_others:
        here = f" at {cluster_behind(basis.cluster)}"
        that_is = [_in_pool(ranked, basis.pool), *that_is, *basis.pool.troubles()]
    owes = owed(ranked.balance_per_part or 0)
    balance = f"{ranked.organization} {owes}{here}"
    spread = f"spread over all work done{here and ' there'}"
    if basis.rule == DirectContr.name:
        return [
            *_on_fallback(basis),
            f"As of {time} {balance}, measured by what it contributed, {spread}; "
            f"{_on_age(basis.horizon)}.",
            *that_is,
        ]
    if ranked.gain is not None and basis.estimated_at is not None:
        return [
            *ranked.gain.sentences(),
            f"What {ranked.organization} is worth to the others{here} was estimated at "
            f"{clock_time(basis.estimated_at)}; measured by that, as of {time} it "
            f"{owes}{here}, {spread}.",
            *that_is,
        ]
    if here:
        return [f"As of {time} {balance}, by the rule {basis.rule}.", *that_is]
    by_balance = ranked.score == ranked.balance
    why = f"it {owes}" if by_balance else ranked.reason
    return [
        f"At {time} the rule {basis.rule} gave {ranked.organization} {rank} ({why}).",
        f"That {gives}",
    ]


def _in_pool(ranked: RankedOrganization, pool: PoolStatus) -> str:
    """Says what decides where it is not what was given and got at this cluster alone."""
    clusters = listed([cluster_behind(ledger) for ledger in pool.stay.clusters])
    balance = pool.balance_per_part(ranked.organization) or 0
    return (
        f"Pool {pool.stay.pool} decides, over {clusters}: by the sum of all since they joined "
        f"it, {ranked.organization} {owed(balance)}."
    )


def _on_fair_share(ranked: RankedOrganization, horizon: int | None) -> str:
    each = ranked.used_each
    since = "it owns no processors"
    if each is not None:
        when = "so far" if horizon is None else f"in the last {duration_in_words(horizon)}"
        since = f"its jobs used {_hours(each)} hours of each processor it owns {when}"
    before = sum(ranked.before_by_fair_share.values())
    return (
        f"Under Slurm's fair share, with the processors owned as shares, it would be rank "
        f"{ranked.fair_share_rank} of {ranked.organizations}, because {since}: "
        f"{counted(before)} of other organizations would be ahead"
        f"{_by_name(ranked.before_by_fair_share)}."
    )


def _on_fallback(basis: Basis) -> list[str]:
    now = basis.steering
    if now is None or now.chosen in {"", basis.rule}:
        return []
    return [
        f"The rule {now.chosen} has no estimate to rely on, so {basis.rule} ranks until it has."
    ]


def _on_window(ranked: RankedOrganization, window: LastWindow | None) -> list[str]:
    """Says by how much the organization was late or ahead: the number of all reports."""
    if window is None or ranked.delay is None:
        return []
    return [
        f"Against {window.in_words}, {ranked.organization} was {delay(ranked.delay)}, spread over "
        "everybody's work."
    ]


def _on_age(horizon: int | None) -> str:
    most = "" if horizon is None else f", up to an age of {duration_in_words(horizon)}"
    return f"the earlier work was done, the more it counts{most}"


def _by_name(before: Mapping[str, int]) -> str:
    some = [f"{name} {jobs}" for name, jobs in before.items() if jobs]
    return f" ({', '.join(some)})" if some else ""


def counted(number: int) -> str:
    """Returns so many jobs, in words."""
    return count(number, "job")


def sentence(text: str) -> str:
    """Returns a text with a capital."""
    return text[0].upper() + text[1:]


def _hours(seconds: Fraction) -> str:
    return three_digits(seconds / HOUR)


def sentences_on_steering(steering: Steering, *, of_status: bool = False) -> list[str]:
    """Says since when no daemon steers and that the rest is out of date; empty if it is not.

    Args:
        steering: the facts.
        of_status: whether to say that no daemon runs also while its last cycle still holds.
    """
    is_paused = steering.pause is not None
    sentences = [] if steering.pause is None else sentences_on_pause(steering.pause)
    sentences += _on_last_cycle(steering, of_status=of_status)
    if of_status:
        ordered = [row for row in steering.exceptions if not row.by_guarantee]
        sentences += [on_exception(f"job {row.label}", row, paused=is_paused) for row in ordered]
        sentences += [] if is_paused else sentences_on_guarantees(steering.exceptions)
    return sentences


def _on_last_cycle(steering: Steering, *, of_status: bool) -> list[str]:
    if steering.cycle_ended is None:
        return []
    sentences = []
    since = f"since {clock_time(steering.cycle_ended)} ({duration(steering.age)} ago)"
    if steering.nobody_since is not None and (steering.is_stale or of_status):
        sentences.append(f"No daemon has run {since}.")
    elif steering.is_stale and steering.rolled_back_at is None:
        sentences.append(f"No cycle has succeeded {since}, though a daemon runs.")
    if steering.rolled_back_at is not None:
        at = clock_time(steering.rolled_back_at)
        sentences.append(f"Priorities were rolled back at {at}.")
    if steering.is_stale:
        sentences.append("What follows may be out of date.")
    return sentences


def sentences_on_pause(pause: PauseRow) -> list[str]:
    """Says who paused, since when and why, and the value in Slurm."""
    stands = (
        "Jobs keep the points that they had then, and new ones get none"
        if pause.keep
        else "Jobs have the priorities that they would have without shapleyprio"
    )
    reason = pause.reason.rstrip(".")
    return [
        f"Steering is paused since {clock_time(pause.since)} by {pause.user}: {reason}.",
        f"{stands}; work still counts.",
    ]


def on_exception(job: str, row: ExceptionRow, *, paused: bool) -> str:
    """Says which job goes first, since when, and who ordered it and why; in a pause, that it will.

    Args:
        job: what to call it.
        row: its exception; in a pause one that an admin has ordered.
        paused: whether steering is.
    """
    since = clock_time(row.since)
    if row.by_guarantee and row.until is not None:
        return sentence(
            f"{job} goes before {row.others} since {since}, by {row.user}, and is to start by "
            f"{clock_time(row.until)}: {row.reason}."
        )
    until = "" if row.until is None else f" until {clock_time(row.until)}"
    reason = row.reason.rstrip(".")
    if paused:
        return (
            f"Once steering is resumed {job} goes before {row.others}{until}, ordered by "
            f"{row.user} at {since}: {reason}."
        )
    return sentence(
        f"{job} goes before {row.others} since {since}{until}, ordered by {row.user}: {reason}."
    )
