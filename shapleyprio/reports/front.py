"""What the first pages of replays and audits have in common."""

from __future__ import annotations

from collections.abc import Sequence

from shapleyprio.common.wording import duration, listed, whole
from shapleyprio.replay.policies import RECORDED, SAMPLED_REFERENCE
from shapleyprio.replay.policies.titles import OURS, title_of
from shapleyprio.replay.results import Result, jobs_of
from shapleyprio.replay.workloads.log import Log
from shapleyprio.replay.workloads.workload import Workload, period_in_words

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
