"""The policies by name, what they are called where people read, and which are compared by default.

Nothing here imports numpy, so that help texts and the daemon can name policies. A new
policy that looks at one schedule is a decision in `native/choice.c` with a code in `engine.codes`,
and an entry here; any other is a function from a workload and options to a schedule, and an
entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from shapleyprio.replay.engine import codes
from shapleyprio.replay.policies.policy import Policy, RunOptions

if TYPE_CHECKING:
    from shapleyprio.replay.engine.schedule import Schedule
    from shapleyprio.replay.workloads.workload import Workload


REFERENCE = "ref"
"""The policy whose schedule is fair by definition."""

SAMPLED_REFERENCE = "rand"
"""What stands in for the reference where there are too many organizations for it."""

SHAPLEY = "shapley"
"""The policy by Shapley values that are recomputed every now and then."""

LIVE = "live"
"""The policy that a daemon could follow."""

LIVE_HEEDS = ("recompute", "coalitions", "predictor")
"""The attributes of `Estimation` that it heeds."""

RECORDED = "recorded"
"""What happened, as a policy."""

FAIR_SHARE = "fairshare"
"""The policy by processor time for its share; with a half-life behind a colon, by what is left."""

KAI = "kai"
"""The policy of the KAI Scheduler; with a half-life behind a colon, its time-based fair share."""

COMPARED = ("directcontr", FAIR_SHARE)
"""Policies that replays, audits and the live drift compare with the reference by default."""

MOST_FOR_REF = 12
"""Organizations for which ref is run by default; it takes twice as long with each one more."""

WITHOUT_GUARANTEE = (REFERENCE, SAMPLED_REFERENCE, RECORDED)
"""Policies that say what is fair, or was, and so keep no guarantees."""

RULE = "rule"
"""Prefix of policies that are the daemon's rules."""


def _ref(workload: Workload, options: RunOptions) -> Schedule:
    from shapleyprio.replay.policies.coalitions import ref

    return ref(workload, options)


def _rand(workload: Workload, options: RunOptions) -> Schedule:
    from shapleyprio.replay.policies.coalitions import rand

    return rand(workload, options)


def _shapley(workload: Workload, options: RunOptions) -> Schedule:
    from shapleyprio.replay.policies.shapley import shapley

    return shapley(workload, options)


def _live(workload: Workload, options: RunOptions) -> Schedule:
    from shapleyprio.replay.policies.shapley import live

    return live(workload, options)


def _recorded(workload: Workload, options: RunOptions) -> Schedule:
    from shapleyprio.replay.policies.one_schedule import recorded

    return recorded(workload, options)


def compiled(
    name: str, code: int, *, decision: str, source: str = "", half_life: int | None = None
) -> Policy:
    """Makes a policy that looks at one schedule, by a decision in `native/choice.c`."""

    def schedule(workload: Workload, options: RunOptions) -> Schedule:
        from shapleyprio.replay.policies.one_schedule import compiled_decisions

        return compiled_decisions(workload, name, code, options, half_life)

    remembers = code == codes.KARMA or half_life is not None
    return Policy(
        name=name,
        decision=decision,
        source=source,
        schedule=schedule,
        code=None if remembers else code,
    )


_ONE_SCHEDULE = (
    compiled(
        "directcontr",
        codes.DIRECT,
        decision="the largest φ̃ − ψ: worth of the work done on its processors minus worth of its "
        "jobs' work",
        source="SPAA 2013, Fig. 9",
    ),
    compiled(
        FAIR_SHARE,
        codes.FAIR_SHARE,
        decision="the least processor time of its jobs so far, for its share",
        source="SPAA 2013, section 7.1",
    ),
    compiled(
        "utfairshare",
        codes.UTILITY_SHARE,
        decision="the least ψ for its share",
        source="SPAA 2013, section 7.1",
    ),
    compiled(
        "currfairshare",
        codes.CURRENT_SHARE,
        decision="the fewest processors at work for it now, for its share",
        source="SPAA 2013, section 7.1",
    ),
    compiled(
        "roundrobin",
        codes.ROUND_ROBIN,
        decision="the next one in the list after the one served last",
        source="SPAA 2013, section 7.1",
    ),
    compiled(
        "fcfs",
        codes.FIRST_COME,
        decision="the earliest release, then the order of the log",
    ),
    compiled(
        "karma",
        codes.KARMA,
        decision="one with less than half its processors at work for it, then the most credits for "
        "its share: it earns half its processors and what others borrow of the other half, "
        "and pays for what it uses above that",
        source="Karma, Algorithm 1",
    ),
    compiled(
        KAI,
        codes.KAI,
        decision="one with no more than its fair share, then one whose next job stays within its "
        "own processors, then the least at work for it with that job, for the larger of the two",
        source="KAI Scheduler, plugin proportion",
    ),
    compiled(
        "orig-direct",
        codes.DIRECT,
        decision="directcontr by its name in CloudShare: ψ times processors",
        source="CloudShare, Eq. 2",
    ),
    compiled(
        "rel-direct",
        codes.RELATIVE,
        decision="directcontr with ψ′: each part is worth its job's release more",
        source="CloudShare, Eq. 3",
    ),
    compiled(
        "simpl-direct",
        codes.SURFACE,
        decision="directcontr with ψ″: the number of parts",
        source="CloudShare, Eq. 4",
    ),
)

DECAYED = {
    FAIR_SHARE: (
        codes.DECAYED_SHARE,
        "the least processor time of its jobs for its share, half of it forgotten",
        "Slurm, PriorityDecayHalfLife; Kueue, usageHalfLifeTime",
    ),
    KAI: (
        codes.KAI,
        "as kai, but the more was used, the smaller the fair share, half of it forgotten",
        "KAI Scheduler, time-based fair share",
    ),
}
"""Policies with a half-life: code, decision, source."""

ONE_SCHEDULE = tuple(policy.name for policy in _ONE_SCHEDULE)
"""Policies that look at one schedule alone, and so run in one pass."""

POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        policy.name: policy
        for policy in (
            Policy(
                name=REFERENCE,
                decision="the largest φ − ψ, φ being the exact Shapley value; every coalition has "
                "a schedule in which it decides by its own",
                source="SPAA 2013, Definitions 3.1 and 3.2, Figs. 1 and 3",
                schedule=_ref,
            ),
            Policy(
                name=SAMPLED_REFERENCE,
                decision="the largest φ − ψ, φ being estimated from the coalitions of random "
                "orderings, which start jobs by release",
                source="SPAA 2013, Fig. 6, Theorem 5.6",
                schedule=_rand,
            ),
            Policy(
                name=SHAPLEY,
                decision="the largest φ − ψ, φ being computed every now and then, from "
                "coalitions that decide as under ref where that is affordable",
                schedule=_shapley,
                heeds=("recompute", "coalitions"),
            ),
            Policy(
                name=LIVE,
                decision="as shapley, with what is known at the time: processing times of "
                "unfinished jobs are predicted",
                schedule=_live,
                heeds=LIVE_HEEDS,
            ),
            *_ONE_SCHEDULE,
            Policy(
                name=RECORDED,
                decision="nobody decides: the starts in the log",
                schedule=_recorded,
            ),
        )
    }
)
"""Name -> policy, in the order of the documentation."""


def policies_heeding(name: str) -> list[str]:
    """Returns the policies that heed an attribute of `Estimation`.

    >>> policies_heeding("predictor")
    ['live']
    """
    return [policy.name for policy in POLICIES.values() if name in policy.heeds]


def reference_for(organizations: int, most: int) -> str:
    """Returns the policy that counts as fair.

    Args:
        organizations: how many there are.
        most: with more of them, coalitions are sampled.
    """
    return REFERENCE if organizations <= most else SAMPLED_REFERENCE


OURS = ("directcontr", SHAPLEY, LIVE)
"""Policies that decide as a rule of the daemon does."""

TITLES: Mapping[str, str] = {
    RECORDED: "what happened",
    REFERENCE: f"fair ({REFERENCE})",
    SAMPLED_REFERENCE: f"nearly fair ({SAMPLED_REFERENCE})",
    **{policy: f"shapleyprio ({policy})" for policy in OURS},
    "fairshare": "Slurm's fair share",
    "fcfs": "first come, first served",
    "roundrobin": "in turn (roundrobin)",
}
"""Policy -> its title; other policies go by their names."""


def title_of(policy: str) -> str:
    """Returns what a schedule is called.

    >>> title_of("directcontr"), title_of("fairshare"), title_of("rand-15")
    ('shapleyprio (directcontr)', "Slurm's fair share", 'nearly fair (rand-15)')
    """
    name, dash, orderings = policy.partition("-")
    if name == SAMPLED_REFERENCE and dash and orderings.isdecimal():
        return f"nearly fair ({policy})"
    return TITLES.get(policy, policy)


def under(policy: str) -> str:
    """Returns in which schedule something came about.

    >>> under("recorded"), under("directcontr")
    ('in what happened', 'under shapleyprio (directcontr)')
    """
    title = title_of(policy)
    return f"in {title}" if policy == RECORDED else f"under {title}"
