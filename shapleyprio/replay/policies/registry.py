"""The policies by name, and which of them are compared by default.

Nothing here imports numpy, so that help texts and the daemon can name policies. A new
policy that looks at one schedule is a decision in `native/choice.c` with a code in `engine.codes`,
and an entry here; any other is a function from a workload and options to a schedule, and an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from shapleyprio.common.wording import seconds_in
from shapleyprio.fairness.rules import RULES
from shapleyprio.replay.coalitions.options import DEFAULT_ESTIMATION, Estimation
from shapleyprio.replay.engine import codes
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.policies.loading import function_named
from shapleyprio.replay.policies.policy import ORDERINGS, Policy, RunOptions, no_progress
from shapleyprio.replay.policies.utilities import utility_named
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.workloads.choices import DEFAULT_SEED

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

EXPERIMENT_POLICIES = (
    *(SAMPLED_REFERENCE, *COMPARED),
    *("utfairshare", "currfairshare", "roundrobin"),
)
"""Policies that experiments compare with the reference by default: those of SPAA 2013."""


def _ref(workload: Workload, options: RunOptions) -> Schedule:
    if options.dask is not None:
        from shapleyprio.replay.policies.on_dask import ref_on_dask

        return ref_on_dask(workload, options)
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
    from shapleyprio.replay.policies.recorded import recorded

    return recorded(workload, options)


def _compiled(
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
    _compiled(
        "directcontr",
        codes.DIRECT,
        decision="the largest φ̃ − ψ: worth of the work done on its processors less worth of its "
        "jobs' work",
        source="SPAA 2013, Fig. 9",
    ),
    _compiled(
        FAIR_SHARE,
        codes.FAIR_SHARE,
        decision="the least processor time of its jobs so far, for its share",
        source="SPAA 2013, section 7.1",
    ),
    _compiled(
        "utfairshare",
        codes.UTILITY_SHARE,
        decision="the least ψ for its share",
        source="SPAA 2013, section 7.1",
    ),
    _compiled(
        "currfairshare",
        codes.CURRENT_SHARE,
        decision="the fewest processors at work for it now, for its share",
        source="SPAA 2013, section 7.1",
    ),
    _compiled(
        "roundrobin",
        codes.ROUND_ROBIN,
        decision="the next one in the list after the one served last",
        source="SPAA 2013, section 7.1",
    ),
    _compiled(
        "fcfs",
        codes.FIRST_COME,
        decision="the earliest release, then the order of the log",
    ),
    _compiled(
        "karma",
        codes.KARMA,
        decision="whoever has less than half its processors at work for it, then the most credits "
        "for its share: it earns half its processors and what others borrow of the other half, "
        "and pays for what it has above",
        source="Karma, Algorithm 1",
    ),
    _compiled(
        KAI,
        codes.KAI,
        decision="whoever has no more than its fair share, then whom its next job leaves within "
        "its own processors, then the least at work for it with that job, for the larger of both",
        source="KAI Scheduler, plugin proportion",
    ),
    _compiled(
        "orig-direct",
        codes.DIRECT,
        decision="directcontr by its name in CloudShare: ψ times processors",
        source="CloudShare, Eq. 2",
    ),
    _compiled(
        "rel-direct",
        codes.RELATIVE,
        decision="directcontr with ψ′: each part is worth its job's release more",
        source="CloudShare, Eq. 3",
    ),
    _compiled(
        "simpl-direct",
        codes.SURFACE,
        decision="directcontr with ψ″: the number of parts",
        source="CloudShare, Eq. 4",
    ),
)

_DECAYED = {
    FAIR_SHARE: (
        codes.DECAYED_SHARE,
        "the least processor time of its jobs for its share, half of it forgotten",
        "Slurm, PriorityDecayHalfLife; Kueue, usageHalfLifeTime",
    ),
    KAI: (
        codes.KAI,
        "as kai, fair shares being the smaller the more was used, half of it forgotten",
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


def run_policy(
    workload: Workload,
    policy: str,
    *,
    seed: int = DEFAULT_SEED,
    orderings: int = ORDERINGS,
    cores: int = 1,
    dask: Any = None,
    estimation: Estimation = DEFAULT_ESTIMATION,
    progress: ProgressCallback | None = None,
) -> Schedule:
    """Returns the schedule that a policy makes of a workload.

    Args:
        workload: what is to be scheduled; live predicts from its history, and without one by
            limits alone (`workload_of` with `with_history` has it).
        policy: as for `policy_named`.
        seed: of all random draws.
        orderings: random orderings that rand samples.
        cores: processors that ref, shapley and live may compute on.
        dask: client (`distributed.Client`) of workers on which ref computes instead.
        estimation: of contributions by shapley and live.
        progress: called with the second of the window that was reached.

    Raises:
        PolicyError: there is no such policy, it needs what the log does not have, or numbers may
            get larger than can be compared exactly.
        UtilityError: there is no such utility, or it cannot be used for this workload.
        DaskError: the workers cannot do it, or one is gone.
    """
    options = RunOptions(
        seed=seed,
        orderings=orderings,
        cores=cores,
        dask=dask,
        estimation=estimation,
        progress=progress or no_progress,
    )
    return policy_named(policy).schedule(workload, options)


def policies_heeding(name: str) -> list[str]:
    """Returns the policies that heed an attribute of `Estimation`.

    >>> policies_heeding("predictor")
    ['live']
    """
    return [policy.name for policy in POLICIES.values() if name in policy.heeds]


def heeds(policy: str, name: str) -> bool:
    """Returns whether a policy, by its name, heeds an attribute of `Estimation`.

    >>> heeds("rule:shapley", "predictor"), heeds("rule:directcontr", "predictor")
    (True, False)
    """
    policy = policy.partition("@")[0]
    prefix, _, rest = policy.partition(":")
    if prefix == RULE and rest in RULES:
        return name in _by_rule(rest).heeds
    return policy in policies_heeding(name)


def policy_named(name: str) -> Policy:
    """Returns a policy by its name.

    Args:
        name: one of `POLICIES`; ``fairshare:HALF-LIFE`` or ``kai:HALF-LIFE``, such as
            fairshare:7d; ``ref:UTILITY`` for one of `shapleyprio.replay.policies.utilities`;
            ``rule:NAME`` for one of the daemon's `RULES`; or ``module:function`` for a user's own
            (see `shapleyprio.replay.policies.own`). With ``@4h`` behind it, with a guarantee.

    Raises:
        PolicyError: there is no such policy.
        UtilityError: there is no such utility.
    """
    if name in POLICIES:
        return POLICIES[name]
    if "@" in name:
        return _with_guarantee(name)
    prefix, colon, rest = name.partition(":")
    if colon and prefix == REFERENCE:
        return _ref_for(rest)
    if colon and prefix == RULE:
        return _by_rule(rest)
    if colon and prefix in _DECAYED:
        return _decayed(name)
    if colon and prefix not in POLICIES:
        return _own(name)
    near = get_close_matches(prefix, POLICIES, n=1)
    hint = (
        f"did you mean {near[0]}?"
        if near
        else f"take one of {', '.join(POLICIES)}, or module:function for your own"
    )
    raise PolicyError(f"unknown policy {name!r}; {hint}")


def _with_guarantee(name: str) -> Policy:
    before, _, wait = name.partition("@")
    policy, seconds = policy_named(before), seconds_in(wait)
    if not _keeps_guarantees(before):
        raise PolicyError(f"policy {before} keeps no guarantees; leave @{wait} out")
    if not seconds:
        raise PolicyError(f"policy {name!r}: {wait!r} is no wait; write for instance {before}@4h")

    def schedule(workload: Workload, options: RunOptions) -> Schedule:
        found = policy.schedule(workload, replace(options, guarantee=seconds))
        return replace(found, policy=name)

    return replace(
        policy,
        name=name,
        decision=f"{policy.decision}; jobs with a guarantee of {wait} before all",
        schedule=schedule,
        code=None,
    )


def _keeps_guarantees(policy: str) -> bool:
    """Returns whether a policy of that name may have a guarantee."""
    kind = policy.partition(":")[0]
    return kind not in WITHOUT_GUARANTEE and not kind.startswith(f"{SAMPLED_REFERENCE}-")


def guaranteed(policies: Iterable[str], wait: str | None) -> list[str]:
    """Returns policies, each followed by the same with a guarantee, where it can have one.

    >>> guaranteed(["ref", "fairshare"], "4h")
    ['ref', 'fairshare', 'fairshare@4h']
    """
    found = []
    for policy in policies:
        found.append(policy)
        if wait is not None and "@" not in policy and _keeps_guarantees(policy):
            found.append(f"{policy}@{wait}")
    return found


def reference_for(organizations: int, most: int) -> str:
    """Returns the policy that counts as fair.

    Args:
        organizations: how many there are.
        most: with more of them, coalitions are sampled.
    """
    return REFERENCE if organizations <= most else SAMPLED_REFERENCE


def _ref_for(utility_name: str) -> Policy:
    utility = utility_named(utility_name)

    def schedule(workload: Workload, options: RunOptions) -> Schedule:
        from shapleyprio.replay.policies.arbitrary import ref_for

        return ref_for(
            workload, utility, name=utility_name, seed=options.seed, progress=options.progress
        )

    return Policy(
        name=f"{REFERENCE}:{utility_name}",
        decision=f"ref for the utility {utility_name}",
        source="SPAA 2013, Definition 3.1 and Fig. 1",
        schedule=schedule,
    )


def _decayed(name: str) -> Policy:
    prefix, _, half_life = name.partition(":")
    seconds = seconds_in(half_life)
    if not seconds:
        raise PolicyError(
            f"policy {name!r}: {half_life!r} is not a half-life; "
            f"write for instance {prefix}:7d or {prefix}:12h"
        )
    code, decision, source = _DECAYED[prefix]
    return _compiled(
        name, code, decision=f"{decision} every {half_life}", source=source, half_life=seconds
    )


def _by_rule(name: str) -> Policy:
    rule = RULES.get(name)
    if rule is None:
        raise PolicyError(f"unknown rule {name!r}; take one of {', '.join(RULES)}")

    def schedule(workload: Workload, options: RunOptions) -> Schedule:
        from shapleyprio.replay.policies.own import rule_decisions

        return rule_decisions(workload, f"{RULE}:{name}", rule, options)

    return Policy(
        name=f"{RULE}:{name}",
        decision=f"the order of the daemon's rule {name}: by {rule.criterion}",
        schedule=schedule,
        heeds=LIVE_HEEDS if rule.estimates else (),
    )


def _own(name: str) -> Policy:
    function = function_named(
        name, kind="policy", example="policies:shortest_queue", error=PolicyError
    )

    def schedule(workload: Workload, options: RunOptions) -> Schedule:
        from shapleyprio.replay.policies.own import own_decisions

        return own_decisions(workload, name, function, options)

    return Policy(name=name, decision=f"the order that {name} returns", schedule=schedule)
