"""Policies by the names that users write, with a guarantee or a half-life in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from shapleyprio.common.wording import seconds_in
from shapleyprio.fairness.rules import RULES
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.policies.policy import (
    ORDERINGS,
    Policy,
    RunOptions,
    function_named,
    no_progress,
)
from shapleyprio.replay.progress import ProgressCallback
from shapleyprio.replay.workloads.choices import (
    DEFAULT_ESTIMATION,
    DEFAULT_SEED,
    Estimation,
    Guarantee,
)

if TYPE_CHECKING:
    from shapleyprio.replay.engine.schedule import Schedule
    from shapleyprio.replay.workloads.workload import Workload
from shapleyprio.replay.policies.registry import (
    DECAYED,
    LIVE_HEEDS,
    POLICIES,
    RULE,
    SAMPLED_REFERENCE,
    WITHOUT_GUARANTEE,
    compiled,
    policies_heeding,
)

AHEAD = "ahead"
"""So ends the name of a guarantee of which jobs ask ahead."""


def run_policy(
    workload: Workload,
    policy: str,
    *,
    seed: int = DEFAULT_SEED,
    orderings: int = ORDERINGS,
    cores: int = 1,
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
        estimation: of contributions by shapley and live.
        progress: called with the second of the window that was reached.

    Raises:
        PolicyError: there is no such policy, it needs what the log does not have, or numbers may
            get larger than can be compared exactly.
    """
    options = RunOptions(
        seed=seed,
        orderings=orderings,
        cores=cores,
        estimation=estimation,
        progress=progress or no_progress,
    )
    return policy_named(policy).schedule(workload, options)


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
            fairshare:7d; ``rule:NAME`` for one of the daemon's `RULES`; or ``module:function`` for
            a user's own (see `shapleyprio.replay.policies.own`). With ``@4h`` behind it, with a
            guarantee, with ``@4h:ahead`` one of which jobs ask ahead.

    Raises:
        PolicyError: there is no such policy.
    """
    if name in POLICIES:
        return POLICIES[name]
    if "@" in name:
        return _with_guarantee(name)
    prefix, colon, rest = name.partition(":")
    if colon and prefix == RULE:
        return _by_rule(rest)
    if colon and prefix in DECAYED:
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


def guarantee_in(text: str) -> Guarantee | None:
    """Returns the guarantee that a text names; None if it names none.

    >>> guarantee_in("4h"), guarantee_in("60s:ahead"), guarantee_in("4h:late")
    (Guarantee(wait=14400, ahead=False), Guarantee(wait=60, ahead=True), None)
    """
    wait, colon, how = text.partition(":")
    seconds = seconds_in(wait)
    if not seconds or how != (AHEAD if colon else ""):
        return None
    return Guarantee(seconds, ahead=bool(colon))


def _with_guarantee(name: str) -> Policy:
    before, _, wait = name.partition("@")
    policy, guarantee = policy_named(before), guarantee_in(wait)
    if not _keeps_guarantees(before):
        raise PolicyError(f"policy {before} keeps no guarantees; leave @{wait} out")
    if guarantee is None:
        raise PolicyError(
            f"policy {name!r}: {wait!r} is not a wait; write for instance {before}@4h, or "
            f"{before}@4h:{AHEAD}"
        )

    def schedule(workload: Workload, options: RunOptions) -> Schedule:
        if guarantee.ahead and (workload.wide, workload.backfill) != ("rigid", "easy"):
            raise PolicyError(
                f"policy {name}: asking ahead needs whole jobs with backfill; take --wide rigid "
                "--backfill easy"
            )
        found = policy.schedule(workload, replace(options, guarantee=guarantee))
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
    return policy not in WITHOUT_GUARANTEE and not policy.startswith(f"{SAMPLED_REFERENCE}-")


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


def _decayed(name: str) -> Policy:
    prefix, _, half_life = name.partition(":")
    seconds = seconds_in(half_life)
    if not seconds:
        raise PolicyError(
            f"policy {name!r}: {half_life!r} is not a half-life; "
            f"write for instance {prefix}:7d or {prefix}:12h"
        )
    code, decision, source = DECAYED[prefix]
    return compiled(
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
    function = function_named(name)

    def schedule(workload: Workload, options: RunOptions) -> Schedule:
        from shapleyprio.replay.policies.own import own_decisions

        return own_decisions(workload, name, function, options)

    return Policy(name=name, decision=f"the order that {name} returns", schedule=schedule)
