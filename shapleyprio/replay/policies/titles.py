"""What schedules are called where people read who know no policy by its name."""

from __future__ import annotations

from collections.abc import Mapping

from shapleyprio.replay.policies.registry import (
    LIVE,
    RECORDED,
    REFERENCE,
    SAMPLED_REFERENCE,
    SHAPLEY,
)

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
