"""The paper's promises of a schedule, held against the schedule itself.

Euro-Par 2007: Propositions 4 and 5 and the cases after them. The optimum is not known, so ratios
are to max(LB, p_max), which it cannot be below and which the proofs use in its place: a ratio
within the promise proves that it is kept, one beyond it shows that this instance needs a check.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from shapleyprio.lab.papers.mosp.model import BatchSchedule


@dataclass(frozen=True, slots=True)
class Verdict:
    """How good a schedule is, and whether it is as good as promised.

    Attributes:
        ratio: makespan over max(LB, p_max).
        promised_ratio: what the paper promises at most for this schedule; None: nothing.
        worst_to_alone: the largest makespan of an organization over the one it has alone.
        worse_off: how many organizations complete later than alone.
        promised_alone: whether the paper promises that nobody is worse off here.
    """

    ratio: Fraction
    promised_ratio: int | None
    worst_to_alone: Fraction
    worse_off: int
    promised_alone: bool

    @property
    def breaks_ratio(self) -> bool:
        """Whether the makespan is beyond the promised ratio."""
        return self.promised_ratio is not None and self.ratio > self.promised_ratio

    @property
    def breaks_alone(self) -> bool:
        """Whether somebody is worse off than alone, against the promise."""
        return self.promised_alone and self.worse_off > 0


def verdict(algorithm: str, schedule: BatchSchedule, alone: BatchSchedule) -> Verdict:
    """Judges the schedule that an algorithm made, with the local one to compare it with.

    Organizations without jobs are not worse off.
    """
    pairs = [
        (ours, by_itself)
        for ours, by_itself in zip(schedule.makespans, alone.makespans, strict=True)
        if by_itself
    ]
    return Verdict(
        ratio=schedule.makespan / schedule.instance.optimum_bound,
        promised_ratio=_promised_ratio(algorithm, schedule),
        worst_to_alone=max(Fraction(ours, by_itself) for ours, by_itself in pairs),
        worse_off=sum(ours > by_itself for ours, by_itself in pairs),
        promised_alone=_promises_alone(algorithm, schedule),
    )


def _promised_ratio(algorithm: str, schedule: BatchSchedule) -> int | None:
    """Returns 3 if the last job is low or with two organizations, 4 for the cut at 3."""
    n = schedule.instance.organizations
    if algorithm.startswith("molba-2"):
        return 3 if schedule.ends_low or n == 2 else None
    return 4 if algorithm.startswith("molba-3") else None


def _promises_alone(algorithm: str, schedule: BatchSchedule) -> bool:
    """Returns whether nobody loses: always at 3·LB, at 2·LB only if the last job is low."""
    if algorithm.startswith("molba-2"):
        return schedule.ends_low
    return algorithm.startswith(("local", "molba-3"))
