"""Where organizations rank and why, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from shapleyprio.common.wording import (
    HOUR,
    clock_time,
    count,
    delay,
    duration_in_words,
    listed,
    owed,
    three_digits,
)
from shapleyprio.daemon.answering.explain_facts import Basis
from shapleyprio.daemon.answering.explain_ranks import RankedOrganization
from shapleyprio.daemon.answering.pool_status import PoolStatus
from shapleyprio.daemon.drift.figures import LastWindow
from shapleyprio.fairness.directcontr import DirectContr
from shapleyprio.fairness.pool import cluster_behind


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
    balance = f"{ranked.organization} {_balance(ranked)}{here}"
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
            f"{_balance(ranked)}{here}, {spread}.",
            *that_is,
        ]
    if here:
        return [f"As of {time} {balance}, by the rule {basis.rule}.", *that_is]
    by_balance = ranked.score == ranked.balance
    why = f"it {_balance(ranked)}" if by_balance else ranked.reason
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


def _balance(ranked: RankedOrganization) -> str:
    if ranked.balance_per_part is None and ranked.balance:  # a standing of an older release
        return "is owed" if ranked.balance > 0 else "owes"
    return owed(ranked.balance_per_part or 0)


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
