"""The defaults of a replay."""

from __future__ import annotations

import math

from shapleyprio.replay.policies import COMPARED, MOST_FOR_REF, RECORDED, reference_for
from shapleyprio.replay.workloads.log import UNKNOWN
from shapleyprio.replay.workloads.workload import Workload


def default_policies(workload: Workload) -> list[str]:
    """Returns the policies that are run if none is named."""
    reference = reference_for(len(workload.organizations), MOST_FOR_REF)
    recorded = [RECORDED] if bool((workload.start != UNKNOWN).all()) else []
    return [reference, *COMPARED, *recorded]


def orderings_for(organizations: int, epsilon: float, confidence: float) -> int:
    """Returns N = ⌈k²/ε² · ln(k/(1 − λ))⌉ (SPAA 2013, Theorem 5.6).

    Args:
        organizations: k.
        epsilon: ε, how far Rand may be from Ref, as a part of all utility.
        confidence: λ, with what probability.

    >>> orderings_for(5, 0.5, 0.9)
    392
    """
    return math.ceil((organizations / epsilon) ** 2 * math.log(organizations / (1 - confidence)))
