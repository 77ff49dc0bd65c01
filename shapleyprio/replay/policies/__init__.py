"""Policies: what a replay decides by. `registry` has them all, with their documentation."""

from __future__ import annotations

from shapleyprio.replay.policies.names import guarantee_in as guarantee_in
from shapleyprio.replay.policies.names import guaranteed as guaranteed
from shapleyprio.replay.policies.names import heeds as heeds
from shapleyprio.replay.policies.names import policy_named as policy_named
from shapleyprio.replay.policies.names import run_policy as run_policy
from shapleyprio.replay.policies.policy import ORDERINGS as ORDERINGS
from shapleyprio.replay.policies.policy import RunOptions as RunOptions
from shapleyprio.replay.policies.registry import COMPARED as COMPARED
from shapleyprio.replay.policies.registry import LIVE as LIVE
from shapleyprio.replay.policies.registry import MOST_FOR_REF as MOST_FOR_REF
from shapleyprio.replay.policies.registry import ONE_SCHEDULE as ONE_SCHEDULE
from shapleyprio.replay.policies.registry import POLICIES as POLICIES
from shapleyprio.replay.policies.registry import RECORDED as RECORDED
from shapleyprio.replay.policies.registry import REFERENCE as REFERENCE
from shapleyprio.replay.policies.registry import SAMPLED_REFERENCE as SAMPLED_REFERENCE
from shapleyprio.replay.policies.registry import SHAPLEY as SHAPLEY
from shapleyprio.replay.policies.registry import policies_heeding as policies_heeding
from shapleyprio.replay.policies.registry import reference_for as reference_for
from shapleyprio.replay.workloads.choices import PREDICTORS as PREDICTORS
from shapleyprio.replay.workloads.choices import Estimation as Estimation
