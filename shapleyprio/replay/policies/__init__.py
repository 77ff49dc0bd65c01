"""Policies: what a replay decides by. `registry` has them all, with their documentation."""

from __future__ import annotations

from shapleyprio.replay.coalitions.options import PREDICTORS, Estimation
from shapleyprio.replay.policies.names import (
    files_of,
    guarantee_in,
    guaranteed,
    heeds,
    policy_named,
    run_policy,
)
from shapleyprio.replay.policies.policy import ORDERINGS, Policy, RunOptions
from shapleyprio.replay.policies.registry import (
    COMPARED,
    LIVE,
    MOST_FOR_REF,
    ONE_SCHEDULE,
    POLICIES,
    RECORDED,
    REFERENCE,
    SAMPLED_REFERENCE,
    SHAPLEY,
    policies_heeding,
    reference_for,
)

__all__ = [
    "COMPARED",
    "LIVE",
    "MOST_FOR_REF",
    "ONE_SCHEDULE",
    "ORDERINGS",
    "POLICIES",
    "PREDICTORS",
    "RECORDED",
    "REFERENCE",
    "SAMPLED_REFERENCE",
    "SHAPLEY",
    "Estimation",
    "Policy",
    "RunOptions",
    "files_of",
    "guarantee_in",
    "guaranteed",
    "heeds",
    "policies_heeding",
    "policy_named",
    "reference_for",
    "run_policy",
]
