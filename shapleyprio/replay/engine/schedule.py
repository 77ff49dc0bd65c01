"""The schedule that a policy makes of a workload."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CoalitionValues:
    """What coalitions have at the window's end, each in its own schedule on its own processors.

    Attributes:
        members: int64[c], bit u is set if organization u takes part; none comes twice, none is
            empty.
        values: int64[c], or Python's integers (an array of objects) where the engine used more
            bits: v(C) = Σψ of the members, in part-seconds.
    """

    members: NDArray[np.int64]
    values: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Starts in the order in which they were decided, and so in the order of time.

    One entry stands for copies of one job that start together on one owner's processors (in
    rigid mode for those of the job's processors that are this owner's).

    Attributes:
        policy: what decided.
        seed: of the random draws.
        job: int64, index into the workload's columns.
        start: int64, seconds from the window's begin.
        owner: int32, index of the organization whose processors they got; UNKNOWN where it
            is not known (a recorded schedule without nodes) or an owner outside the consortium.
        copies: int64, how many processors.
        contribution: φ of each organization at the window's end: exact for ref, the estimate for
            rand, as `shapley.estimate` has it for shapley and live, φ̃ for all others; None
            where owners are not known.
        seconds: that the decisions took, reading left out.
        coalitions: values of the coalitions that the policy decided by: of all under ref, of the
            sampled ones under rand; None where it kept no schedules of coalitions.
        bay: int32, index of the bay that has the processors, 0 without partitions; None where it
            is not known.
    """

    policy: str
    seed: int
    job: NDArray[np.int64]
    start: NDArray[np.int64]
    owner: NDArray[np.int32]
    copies: NDArray[np.int64]
    contribution: tuple[Fraction, ...] | None
    seconds: float
    coalitions: CoalitionValues | None = None
    bay: NDArray[np.int32] | None = None
